#!/usr/bin/env python3
"""Polar's PFTP by PyPI polar-ble-tools 0.6.0, driven by lines: one command a line on standard input, one answer a line on standard output.
  cut HEX|- SIZE       a message's chunks of at most SIZE bytes          -> HEX HEX ...
  take HEX HEX ...     chunks of an answer                               -> ok HEX|- | error NUMBER | refused
  list HEX|-           a folder's list                                   -> NAME:SIZE ... | refused
  request COMMAND PATH HEX|-    get, put or remove, with a file's bytes  -> HEX"""
import asyncio
import sys

from polar_ble_tools.polar import _protobuf, pftp


def octets(word): return b'' if word == '-' else bytes.fromhex(word)


async def take(chunks):
    client = pftp.PftpClient(None, timeout_seconds=0.01)
    for chunk in chunks: client._on_mtu_packet('', chunk)
    try: return 'ok ' + ((await client._read_response()).hex() or '-')
    except pftp.PftpResponseError as error: return f'error {error.error_code}'
    except pftp.PftpError: return 'refused'


for line in sys.stdin:
    match line.split():
        case ['cut', message, size]: answer = ' '.join(f.hex() for f in pftp.build_rfc76_frames(octets(message), mtu_size=int(size)))
        case ['take', *chunks]: answer = asyncio.run(take([octets(chunk) for chunk in chunks]))
        case ['list', message]:
            try: answer = ' '.join(f'{e.name}:{e.size}' for e in _protobuf.decode_pftp_directory(octets(message)))
            except _protobuf.ProtobufDecodeError: answer = 'refused'
        case ['request', command, path, data]:
            header = _protobuf.encode_pftp_operation(getattr(_protobuf.PftpCommand, command.upper()), path)
            answer = pftp.make_complete_message(header, octets(data)).hex()
        case _: sys.exit(f'polar_peer.py: {line!r} is no command')
    print(answer, flush=True)
