#!/usr/bin/env python3
"""Writes noise-psk.json, channels.json and records.json, which FerrySeal's tests read.

    python3 -m venv VENV && VENV/bin/pip install noiseprotocol==0.3.1 pyhpke==0.6.5
    VENV/bin/python Plugins/Sealing/FerrySeal/Tests/Vectors/generate.py

noise-psk.json: handshakes with a pre-shared key, and messages after them, by PyPI's noiseprotocol.
channels.json: all bytes of sealed channels over length prefix, 1 000 messages each way, as digests; by noiseprotocol too.
records.json: sealed records, by PyPI's pyhpke and cryptography. Encapsulated keys are random, so each run writes another file.
"""
import hashlib
import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from noise.connection import Keypair, NoiseConnection
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey

folder = Path(__file__).parent


def key(text):
    return hashlib.sha256(text.encode()).digest()


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def handshake(pattern):
    secrets = {name: key(f'{pattern} {name}') for name in ('init static', 'init ephemeral', 'resp static', 'resp ephemeral')}
    psk, prologue = key(f'{pattern} psk'), b'Ferry vectors'
    sides = []
    for side, other in (('init', 'resp'), ('resp', 'init')):
        noise = NoiseConnection.from_name(f'Noise_{pattern}_25519_ChaChaPoly_SHA256'.encode())
        noise.set_as_initiator() if side == 'init' else noise.set_as_responder()
        noise.set_prologue(prologue)
        noise.set_psks(psk)
        noise.set_keypair_from_private_bytes(Keypair.STATIC, secrets[f'{side} static'])
        noise.set_keypair_from_private_bytes(Keypair.EPHEMERAL, secrets[f'{side} ephemeral'])
        if pattern.startswith('KK') or pattern.startswith('IK') and side == 'init':
            noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, public(secrets[f'{other} static']))
        noise.start_handshake()
        sides.append(noise)
    vector = {'name': f'Noise_{pattern}_25519_ChaChaPoly_SHA256', 'pattern': pattern, 'init_prologue': prologue.hex(),
              'resp_prologue': prologue.hex(), 'psk': psk.hex()}
    for side in ('init', 'resp'):
        vector[f'{side}_static'] = secrets[f'{side} static'].hex()
        vector[f'{side}_ephemeral'] = secrets[f'{side} ephemeral'].hex()
    vector['messages'] = []
    writer, reader = sides
    for number in range(8):
        payload = f'payload {number} of {pattern}'.encode()
        if writer.handshake_finished:
            message = writer.encrypt(payload)
            assert reader.decrypt(message) == payload
        else:
            message = bytes(writer.write_message(payload))
            assert reader.read_message(message) == payload
        vector['messages'].append({'payload': payload.hex(), 'ciphertext': bytes(message).hex()})
        writer, reader = reader, writer
    return vector


def varint(value):
    out = b''
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def payload(number, side):
    return bytes((number * 7 + place + side) & 255 for place in range(number * 13 % 300))


def channel(name, opening, pattern):
    """What each side's link takes, from the first message of the handshake to the thousandth after it."""
    secrets = {which: key(f'channel {which}') for which in ('a', 'b', 'ephemeral a', 'ephemeral b')}
    code = bytes(range(16))
    psk = HKDF(SHA256(), 32, None, b'Ferry invitation 1').derive(code)
    sides = []
    for side, other in (('a', 'b'), ('b', 'a')):
        noise = NoiseConnection.from_name(f'Noise_{pattern}_25519_ChaChaPoly_SHA256'.encode())
        noise.set_as_initiator() if side == 'a' else noise.set_as_responder()
        noise.set_prologue(b'Ferry seal' + bytes([opening, 0, 0, 0]))
        if 'psk' in pattern:
            noise.set_psks(psk)
        noise.set_keypair_from_private_bytes(Keypair.STATIC, secrets[side])
        noise.set_keypair_from_private_bytes(Keypair.EPHEMERAL, secrets[f'ephemeral {side}'])
        if pattern == 'KK' or pattern == 'IK' and side == 'a':
            noise.set_keypair_from_public_bytes(Keypair.REMOTE_STATIC, public(secrets[other]))
        noise.start_handshake()
        sides.append(noise)
    streams = [b'', b'']
    turn = 0
    while not sides[turn].handshake_finished:
        message = bytes(sides[turn].write_message())
        sides[1 - turn].read_message(message)
        message = (bytes([opening]) if not streams[0] else b'') + message
        streams[turn] += varint(len(message)) + message
        turn = 1 - turn
    for number in range(1000):
        for side in (0, 1):
            message = sides[side].encrypt(payload(number, side))
            assert sides[1 - side].decrypt(message) == payload(number, side)
            streams[side] += varint(len(message)) + message
    return {'meeting': name, 'a': secrets['a'].hex(), 'b': secrets['b'].hex(), 'code': code.hex(),
            'ephemeralA': secrets['ephemeral a'].hex(), 'ephemeralB': secrets['ephemeral b'].hex(),
            'countA': len(streams[0]), 'digestA': hashlib.sha256(streams[0]).hexdigest(),
            'countB': len(streams[1]), 'digestB': hashlib.sha256(streams[1]).hexdigest()}


def records():
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305)
    sender, consumer = key('record sender'), key('record consumer')
    stream, epoch = 'temperature', bytes(range(16))
    info = b'Ferry record 1' + varint(len(stream)) + stream.encode() + varint(len(epoch)) + epoch
    pair = {name: KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(secret))
            for name, secret in (('sender', sender), ('consumer', consumer))}
    theirs = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(consumer).public_key())
    encapsulated, context = suite.create_sender_context(theirs, info=info, sks=pair['sender'])
    exported = context.export(b'Ferry record key 1', 32)
    cipher = ChaCha20Poly1305(exported)
    name = hashlib.sha256(b'Ferry record key 1\0' + encapsulated).digest()[:4]
    sealed = []
    for place, sequence in enumerate((1, 2, 3, 7, 1000, 1 << 40)):
        record = f'record {sequence}'.encode()
        nonce = bytes(4) + sequence.to_bytes(8, 'little')
        head = b'\x01' + encapsulated if place % 4 == 0 else b'\x02' + name
        sealed.append({'sequence': sequence, 'record': record.hex(), 'sealed': (head + cipher.encrypt(nonce, record, None)).hex()})
    return {'source': 'PyPI pyhpke 0.6.5 and cryptography, by generate.py', 'sender': sender.hex(), 'consumer': consumer.hex(),
            'stream': stream, 'epoch': epoch.hex(), 'records': sealed}


def write(name, value):
    (folder / name).write_text(json.dumps(value, indent=1) + '\n')


if __name__ == '__main__':
    patterns = ['XXpsk0', 'XXpsk1', 'XXpsk2', 'XXpsk3', 'IKpsk0', 'IKpsk1', 'IKpsk2', 'KKpsk0', 'KKpsk1', 'KKpsk2']
    write('noise-psk.json', {'source': 'PyPI noiseprotocol 0.3.1, by generate.py', 'vectors': [handshake(p) for p in patterns]})
    meetings = [('xx', 0x10, 'XX'), ('ik', 0x11, 'IK'), ('kk', 0x12, 'KK'), ('invited', 0x13, 'XXpsk0')]
    write('channels.json', {'source': 'PyPI noiseprotocol 0.3.1, by generate.py', 'vectors': [channel(*m) for m in meetings]})
    write('records.json', records())
