#!/usr/bin/env python3
"""Matter's BTP by connectedhomeip's own BtpEngine (PyPI home-assistant-chip-core 2025.7.0, which calls its private C++ symbols), driven
by lines: one command a line on standard input, one answer a line on standard output.
  init central|peripheral FRAGMENT     a new engine                              -> ok
  request MTU WINDOW [VERSION ...]     encodes a handshake request               -> HEX
  response VERSION FRAGMENT WINDOW     encodes a handshake response              -> HEX
  send HEX|- [ack]                     cuts a message; with ack aboard the first -> HEX HEX ... | refused
  recv HEX                             takes a packet -> error(hex) state(0 idle 1 in progress 2 complete 3 error) ack|- message|-
  ack                                  a stand-alone acknowledgement             -> HEX
Windows and timers are BLEEndPoint's, which is not driven here: the other side counts places and decides when to acknowledge."""
import ctypes as C
import glob
import os
import sys
import sysconfig

out = os.fdopen(os.dup(1), 'w')
os.dup2(2, 1)  # the library logs to standard output
base = sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()['platlib']
library = C.CDLL(glob.glob(base + '/**/_ChipDeviceCtrl.so', recursive=True)[0])
library.CHIPPlatformMemoryInit()
P = C.c_void_p


def function(name, result, *arguments):
    found = getattr(library, name)
    found.argtypes, found.restype = list(arguments), result
    return found


ENGINE = '_ZN4chip3Ble9BtpEngine'
HANDLE = '_ZN4chip6System18PacketBufferHandle'
new_with_data = function(HANDLE + '11NewWithDataEPKvmmt', P, P, P, C.c_size_t, C.c_size_t, C.c_uint16)
new_buffer = function(HANDLE + '3NewEmt', P, P, C.c_size_t, C.c_uint16)
init = function(ENGINE + '4InitEPvb', P, P, P, P, C.c_bool)
send = function(ENGINE + '24HandleCharacteristicSendENS_6System18PacketBufferHandleEb', C.c_bool, P, P, C.c_bool)
receive = function(ENGINE + '28HandleCharacteristicReceivedEONS_6System18PacketBufferHandleERhRb', P, P, P, P, P, P)
encode_ack = function(ENGINE + '19EncodeStandAloneAckERKNS_6System18PacketBufferHandleE', P, P, P, P)
borrow = function(ENGINE + '14BorrowTxPacketEv', P, P, P)
take_sent = function(ENGINE + '12TakeTxPacketEv', P, P, P)
take_received = function(ENGINE + '12TakeRxPacketEv', P, P, P)
set_send_size = function(ENGINE + '17SetTxFragmentSizeEt', None, P, C.c_uint16)
set_receive_size = function(ENGINE + '17SetRxFragmentSizeEt', None, P, C.c_uint16)
send_state = function(ENGINE + '7TxStateEv', C.c_int, P)
receive_state = function(ENGINE + '7RxStateEv', C.c_int, P)
encode_request = function(
    '_ZNK4chip3Ble38BleTransportCapabilitiesRequestMessage6EncodeERKNS_6System18PacketBufferHandleE', P, P, P, P)
encode_response = function(
    '_ZNK4chip3Ble39BleTransportCapabilitiesResponseMessage6EncodeERKNS_6System18PacketBufferHandleE', P, P, P, P)
set_version = function(
    '_ZN4chip3Ble38BleTransportCapabilitiesRequestMessage27SetSupportedProtocolVersionEhh', None, P, C.c_uint8, C.c_uint8)
error = C.create_string_buffer(64)


def code():
    return int.from_bytes(error.raw[0:4], 'little')


def buffer(data=b''):
    handle = P(0)
    if data:
        new_with_data(C.byref(handle), data, len(data), 0, 64)
    else:
        new_buffer(C.byref(handle), 2048, 64)
    assert handle.value
    return handle


def content(handle):
    head = C.string_at(handle.value, 32)
    return C.string_at(int.from_bytes(head[8:16], 'little'), int.from_bytes(head[24:32], 'little'))


def request(mtu, window, versions=(4,)):
    message = C.create_string_buffer(16)
    for place, version in enumerate(versions):
        set_version(message, place, version)
    message[4], message[5], message[6] = mtu & 255, mtu >> 8, window
    handle = buffer()
    encode_request(error, message, C.byref(handle))
    return content(handle).hex() if code() == 0 else 'error %x' % code()


def response(version, fragment, window):
    message = C.create_string_buffer(16)
    message[0], message[2], message[3], message[4] = version, fragment & 255, fragment >> 8, window
    handle = buffer()
    encode_response(error, message, C.byref(handle))
    return content(handle).hex() if code() == 0 else 'error %x' % code()


class Engine:
    def __init__(self, is_central, fragment):
        self.memory = C.create_string_buffer(1024)
        init(error, self.memory, None, not is_central)
        set_send_size(self.memory, fragment)
        set_receive_size(self.memory, fragment)

    def send(self, message, with_ack):
        handle, packets, none = buffer(message), [], P(0)
        if not send(self.memory, C.byref(handle), with_ack):
            return 'refused'
        while True:
            borrowed = P(0)
            borrow(C.byref(borrowed), self.memory)
            packets.append(content(borrowed).hex())
            if send_state(self.memory) != 1:
                break
            if not send(self.memory, C.byref(none), False):
                return 'refused'
        taken = P(0)
        take_sent(C.byref(taken), self.memory)
        return ' '.join(packets)

    def ack(self):
        handle = buffer()
        encode_ack(error, self.memory, C.byref(handle))
        return content(handle).hex()

    def receive(self, packet):
        handle, number, has_number, message = buffer(packet), C.c_uint8(0), C.c_bool(False), '-'
        receive(error, self.memory, C.byref(handle), C.byref(number), C.byref(has_number))
        result, state = code(), receive_state(self.memory)
        if state == 2:
            taken = P(0)
            take_received(C.byref(taken), self.memory)
            message = content(taken).hex()
        return '%x %d %s %s' % (result, state, number.value if has_number.value else '-', message)


def main():
    engine = None
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == 'init':
            engine, answer = Engine(words[1] == 'central', int(words[2])), 'ok'
        elif words[0] == 'request':
            answer = request(int(words[1]), int(words[2]), tuple(map(int, words[3:])) or (4,))
        elif words[0] == 'response':
            answer = response(*map(int, words[1:4]))
        elif words[0] == 'send':
            answer = engine.send(b'' if words[1] == '-' else bytes.fromhex(words[1]), 'ack' in words[2:])
        elif words[0] == 'recv':
            answer = engine.receive(bytes.fromhex(words[1]))
        elif words[0] == 'ack':
            answer = engine.ack()
        else:
            answer = 'unknown'
        print(answer, file=out, flush=True)


main()
