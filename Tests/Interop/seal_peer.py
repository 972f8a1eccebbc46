#!/usr/bin/env python3
"""A peer of a sealed channel over length prefix, by PyPI's noiseprotocol: for FerrySealTests' LivePeerTests.

    seal_peer.py SOCKET CHUNK MEETING SECRET PEER CODE

It connects to a Unix socket of packets, one chunk each, as the side that begins; MEETING is xx, ik, kk or invited. Then it sends 1 000
messages and takes 1 000, a chunk at a time as they come, and checks each. It ends with 0 when all were right.
"""
import hashlib
import select
import socket
import sys

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from noise.connection import Keypair, NoiseConnection

path, chunk, meeting, secret, peer, code = sys.argv[1], int(sys.argv[2]), sys.argv[3], *map(bytes.fromhex, sys.argv[4:7])
opening, pattern = {'xx': (0x10, 'XX'), 'ik': (0x11, 'IK'), 'kk': (0x12, 'KK'), 'invited': (0x13, 'XXpsk0')}[meeting]
count = 1000


def payload(number, side):
    return bytes((number * 7 + place + side) & 255 for place in range(number * 13 % 300))


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


class Link:
    """Messages over chunks: a length as varint, then the message, cut as they come."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)
        self.outbound, self.inbound = b'', b''

    def send(self, message):
        self.outbound += varint(len(message)) + message

    def turn(self, seconds=30):
        """Sends a chunk or takes one, whichever can be done. Takes first, so that neither side waits for the other for ever."""
        writers = [self.socket] if self.outbound else []
        readers, writers, _ = select.select([self.socket], writers, [], seconds)
        if readers:
            packet = self.socket.recv(65536)
            assert packet, 'the other side has left'
            self.inbound += packet
        elif writers:
            self.socket.send(self.outbound[:chunk])
            self.outbound = self.outbound[chunk:]
        else:
            raise TimeoutError('nothing can be sent, and nothing comes')

    def message(self):
        """The next message that is whole; None when there is none."""
        length = shift = 0
        for place, byte in enumerate(self.inbound):
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                end = place + 1 + length
                if len(self.inbound) < end:
                    return None
                message, self.inbound = self.inbound[place + 1:end], self.inbound[end:]
                return message
        return None

    def next(self):
        while (message := self.message()) is None:
            self.turn()
        return message


noise = NoiseConnection.from_name(f'Noise_{pattern}_25519_ChaChaPoly_SHA256'.encode())
noise.set_as_initiator()
noise.set_prologue(b'Ferry seal' + bytes([opening, 0, 0, 0]))
if meeting == 'invited':
    noise.set_psks(HKDF(SHA256(), 32, None, b'Ferry invitation 1').derive(code))
noise.set_keypair_from_private_bytes(Keypair.STATIC, secret)
if meeting in ('ik', 'kk'):
    noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, peer)
noise.start_handshake()
link = Link()
link.send(bytes([opening]) + bytes(noise.write_message()))
while not noise.handshake_finished:
    noise.read_message(link.next())
    if not noise.handshake_finished:
        link.send(bytes(noise.write_message()))
sent = received = 0
digest = hashlib.sha256()
while sent < count or received < count or link.outbound:
    if sent < count and len(link.outbound) < 4096:
        link.send(noise.encrypt(payload(sent, 0)))
        sent += 1
        continue
    while (message := link.message()) is not None:
        plain = noise.decrypt(message)
        assert plain == payload(received, 1), f'message {received} is another'
        received += 1
    if sent < count or received < count or link.outbound:
        link.turn()
print(f'{sent} sent, {received} received', flush=True)
# The other side leaves when it has all.
link.socket.settimeout(30)
while link.socket.recv(65536):
    pass
