#!/usr/bin/env python3
"""Sends lines to a peer, through the gateway that has it: command.py SERVER PEER STREAM < lines

Needs nats-py (pip install nats-py). Each line of standard input becomes a message for the peer's inbox, where they come once and in
order. A line is done when the stream has it; while no server is there, or the stream is full, this waits and tries again.
"""

import asyncio
import os
import re
import sys

import nats
import nats.errors
import nats.js.errors


def word(name: str) -> str:
    """A name as a word of a subject: every byte but letters, digits, - and _ is % and two digits; nothing is %."""
    return re.sub(rb"[^A-Za-z0-9_-]", lambda byte: b"%%%02X" % byte[0][0], name.encode()).decode() or "%"


async def main(server: str, peer: str, stream: str) -> None:
    connection = await nats.connect(server, max_reconnect_attempts=-1, reconnect_time_wait=0.2)
    subject = f"ferry.commands.{word(peer)}.{word(stream)}"
    run = os.urandom(8).hex()
    loop = asyncio.get_running_loop()
    number = 0
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        number += 1
        # Under a name, so that a line whose answer was lost is not there twice.
        headers = {"Nats-Msg-Id": f"{run}/{number}"}
        while True:
            try:
                await connection.jetstream().publish(subject, line.rstrip("\n").encode(), headers=headers)
                break
            except (asyncio.TimeoutError, nats.errors.Error, nats.js.errors.Error):
                await asyncio.sleep(0.2)
    await connection.close()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
