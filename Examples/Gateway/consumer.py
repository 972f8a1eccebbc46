#!/usr/bin/env python3
"""Reads the records of a stream into an SQLite table, each once: consumer.py SERVER[,SERVER...] STREAM TABLE.sqlite [COUNT]

Needs nats-py (pip install nats-py). Ends when the table has COUNT records, or never. A record's Nats-Msg-Id is its name: one that
comes a second time, after a crash here, of a gateway or of a server, changes nothing. Of what gateways of a fleet claim, the last
counts: one under an older token than the peer's newest is refused.
"""

import asyncio
import sqlite3
import sys

import nats
import nats.errors

TABLES = """
CREATE TABLE IF NOT EXISTS record (
    name TEXT PRIMARY KEY, peer TEXT, stream TEXT, gateway TEXT, arrived INTEGER, bytes BLOB);
CREATE TABLE IF NOT EXISTS owner (peer TEXT PRIMARY KEY, token INTEGER, gateway TEXT, claim TEXT);
CREATE TABLE IF NOT EXISTS refused (peer TEXT, token INTEGER, gateway TEXT, claim TEXT);
"""


def take(table: sqlite3.Connection, headers: dict, arrived: int, data: bytes) -> None:
    if "Ferry-Claim" in headers:
        claim = (headers["Ferry-Peer"], int(headers["Ferry-Token"]), headers["Ferry-Gateway"], headers["Ferry-Claim"])
        taken = table.execute(
            "INSERT INTO owner VALUES (?, ?, ?, ?) ON CONFLICT (peer) DO UPDATE SET token = excluded.token,"
            " gateway = excluded.gateway, claim = excluded.claim WHERE excluded.token >= token",
            claim,
        ).rowcount
        if not taken:
            table.execute("INSERT INTO refused VALUES (?, ?, ?, ?)", claim)
        return
    table.execute(
        "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            headers["Nats-Msg-Id"], headers["Ferry-Peer"], headers["Ferry-Stream"], headers["Ferry-Gateway"], arrived,
            data,
        ),
    )


async def main(servers: list[str], stream: str, path: str, count: int | None) -> None:
    table = sqlite3.connect(path)
    table.executescript(TABLES)
    # A server that falls silent, and does not end, is left for another after two pings.
    connection = await nats.connect(servers, max_reconnect_attempts=-1, reconnect_time_wait=0.2, ping_interval=5)
    subscription = None
    while subscription is None:
        try:
            subscription = await connection.jetstream().pull_subscribe("", durable="table", stream=stream)
        except (asyncio.TimeoutError, nats.errors.Error) as error:
            # The first gateway makes the stream, and a cluster may have no leader yet.
            print(f"stream {stream} cannot be read yet: {error}", file=sys.stderr)
            await asyncio.sleep(1)
    while count is None or table.execute("SELECT count(*) FROM record").fetchone()[0] < count:
        try:
            messages = await subscription.fetch(100, timeout=1)
        except (asyncio.TimeoutError, nats.errors.Error):
            # Nothing new, or the server is away.
            await asyncio.sleep(0.1)
            continue
        with table:
            for message in messages:
                take(table, message.headers or {}, message.metadata.sequence.stream, message.data)
        # Only what is on disk is acknowledged.
        for message in messages:
            await message.ack()
    await connection.flush()
    await connection.close()


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1].split(","), sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None))
