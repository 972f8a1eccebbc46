#!/usr/bin/env python3
"""Improv's packets by PyPI py-improv-ble-client 2.0.1, driven by lines: one command a line on standard input, one answer a line on standard
output.
  command NUMBER HEX|- ...   a packet with these strings       -> HEX | refused
  result HEX                 a packet                          -> NUMBER HEX|- ... | refused"""
import struct
import sys

from improv_ble_client import protocol
from improv_ble_client.errors import InvalidCommand


def octets(word): return b'' if word == '-' else bytes.fromhex(word)


for line in sys.stdin:
    match line.split():
        case ['command', number, *strings]:
            # It writes the length of a string as a signed byte.
            try: answer = protocol.UnknownCommand(int(number), [octets(word) for word in strings]).as_bytes().hex()
            except struct.error: answer = 'refused'
        case ['result', packet]:
            try:
                data = octets(packet)
                command = protocol.UnknownCommand.from_bytes(data)
                answer = ' '.join([str(command.cmd_id)] + [s.hex() or '-' for s in protocol.Command._extract_strings(data)])
            except (InvalidCommand, IndexError): answer = 'refused'
        case _: sys.exit(f'improv_peer.py: {line!r} is no command')
    print(answer, flush=True)
