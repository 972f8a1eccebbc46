#!/usr/bin/env python3
"""Formats of devices against their reference implementations, over Ferry's sockets in place of the air: smpclient (PyPI) against
`ferry smp serve`, `ferry smp` against a server made of PyPI smp, and ble-serial's client against `ferry serial --listen`. What is
theirs is theirs to the last byte: only the adapter below their GATT calls is replaced. usage: devices.py FERRY"""
import asyncio, hashlib, os, socket, struct, subprocess, sys, tempfile, types
from pathlib import Path

from ble_serial.bluetooth.ble_client import BLE_client
from smp import file_management as fs, header, image_management as img, os_management as smpos, settings_management as settings
from smpclient import SMPClient
from smpclient.generics import error, success
from smpclient.requests.os_management import EchoWrite
from smpclient.requests.image_management import ImageStatesRead
from smpclient.requests.settings_management import ReadSetting, WriteSetting
from smpclient.transport import SMP_CHARACTERISTIC_UUID
from smpclient.transport.ble import SMPBLETransport

LIMIT = 120


def port():
    with socket.create_server(('127.0.0.1', 0)) as server: return server.getsockname()[1]


def check(holds, what):
    if not holds: sys.exit(f'devices.py: {what}')
    print(f'devices.py: {what}: yes', flush=True)


async def chunks(reader):
    """Ferry's chunks over TCP: 2 bytes of length, the more significant first."""
    while True:
        try: yield await reader.readexactly(struct.unpack('>H', await reader.readexactly(2))[0])
        except (asyncio.IncompleteReadError, ConnectionError): return


def put(writer, chunk): writer.write(struct.pack('>H', len(chunk)) + chunk)


async def connected(address):
    for _ in range(600):
        try: return await asyncio.open_connection('127.0.0.1', address)
        except ConnectionError: await asyncio.sleep(0.05)
    sys.exit('devices.py: nothing listens')


class Air:
    """A BleakClient whose characteristics are a socket."""

    def __init__(self, reader, writer, uuid): self.reader, self.writer, self.uuid, self.address = reader, writer, uuid, 'ferry'

    async def write_gatt_char(self, characteristic, data, response=False):
        put(self.writer, bytes(data))
        await self.writer.drain()

    async def notify(self, body):
        sender = types.SimpleNamespace(uuid=self.uuid)
        async for chunk in chunks(self.reader):
            result = body(sender, chunk)
            if asyncio.iscoroutine(result): await result


class SocketTransport(SMPBLETransport):
    """smpclient's own transport for Bluetooth, over a socket."""

    def __init__(self, value): super().__init__(); self.value = value

    async def connect(self, address, timeout_s):
        self._client = Air(*await connected(int(address)), str(SMP_CHARACTERISTIC_UUID))
        self._smp_characteristic, self._max_write_without_response_size = None, self.value
        self._disconnected_event.clear()
        self.listening = asyncio.create_task(self._client.notify(self._notify_callback))

    async def disconnect(self): self.listening.cancel(); self._client.writer.close()


async def client_of_theirs(ferry):
    """Every value size and both kinds of server: what they send arrives, and what Ferry answers is read."""
    image = bytes(range(256)) * 160 + b'end'
    for value, options in [(20, []), (182, []), (244, ['--buffer', '384', '--buffers', '2']), (244, ['--buffer', '244', '--one-chunk'])]:
        address = port()
        server = subprocess.Popen([ferry, 'smp', 'serve', '--transport', f'tcp:127.0.0.1:{address}', *options])
        try:
            async with SMPClient(SocketTransport(value), str(address)) as client:
                answer = await client.request(EchoWrite(d='hällo'))
                check(success(answer) and answer.r == 'hällo', f'{value} {options}: echo')
                done = [offset async for offset in client.upload(image, upgrade=False)]
                check(done[-1] == len(image), f'{value} {options}: image of {len(image)} bytes in {len(done)} requests')
                done = [offset async for offset in client.upload_file(image[:5000], '/lfs/a')]
                check(bytes(await client.download_file('/lfs/a')) == image[:5000], f'{value} {options}: a file there and back')
                check(success(await client.request(WriteSetting(name='a/b', val=b'\x01'))), f'{value} {options}: a setting set')
                check((await client.request(ReadSetting(name='a/b'))).val == b'\x01', f'{value} {options}: and read')
                check(error(await client.request(ReadSetting(name='none'))), f'{value} {options}: an error is one to them')
                check(success(await client.request(ImageStatesRead())), f'{value} {options}: images are listed')
        finally:
            server.terminate(); server.wait(10)


def refusal(request, body):
    """An answer to the request, with the body in hexadecimal."""
    body = bytes.fromhex(body)
    return bytes([request[0] + 1, 0]) + struct.pack('>H', len(body)) + request[4:8] + body


class Server:
    """A device of PyPI smp's messages. `value` cuts its notifications, which it halves after the third answer."""

    def __init__(self, value, buffers): self.value, self.buffers, self.files, self.image, self.settings, self.answers = value, buffers, {}, b'', {}, 0

    def answer(self, request):
        h = header.Header.loads(request[:header.Header.SIZE])
        common = dict(version=h.version, sequence=h.sequence)
        write = h.op == header.OP.WRITE
        if h.group_id == 0 and h.command_id == 0:
            return smpos.EchoWriteResponse(r=smpos.EchoWriteRequest.loads(request).d, **common)
        if h.group_id == 0 and h.command_id == 6 and self.buffers:
            return smpos.MCUMgrParametersReadResponse(buf_size=self.buffers[0], buf_count=self.buffers[1], **common)
        if h.group_id == 1 and h.command_id == 1 and write:
            r = img.ImageUploadWriteRequest.loads(request)
            if r.off == 0: self.image, self.size, self.sha = b'', r.len, r.sha
            if r.off == len(self.image): self.image += r.data
            match = hashlib.sha256(self.image).digest() == self.sha if len(self.image) == self.size else None
            return img.ImageUploadWriteResponse(off=len(self.image), match=match, **common)
        if h.group_id == 8 and h.command_id == 0 and write:
            r = fs.FileUploadRequest.loads(request)
            data = b'' if r.off == 0 else self.files[r.name]
            self.files[r.name] = data + r.data if r.off == len(data) else data
            return fs.FileUploadResponse(off=len(self.files[r.name]), **common)
        if h.group_id == 8 and h.command_id == 0:
            r = fs.FileDownloadRequest.loads(request)
            data = self.files[r.name]
            return fs.FileDownloadResponse(off=r.off, data=data[r.off:r.off + 100], len=len(data) if r.off == 0 else None, **common)
        if h.group_id == 3 and h.command_id == 0 and write:
            r = settings.WriteSettingRequest.loads(request)
            self.settings[r.name] = r.val
            return settings.WriteSettingResponse(**common)
        if h.group_id == 3 and h.command_id == 0:
            r = settings.ReadSettingRequest.loads(request)
            if r.name in self.settings: return settings.ReadSettingResponse(val=self.settings[r.name], **common)
            return refusal(request, 'a163657272a26567726f75700362726303')  # {"err": {"group": 3, "rc": 3}}
        if h.group_id == 3: return settings.CommitSettingsResponse(**common)
        return refusal(request, 'a162726308')  # {"rc": 8}

    async def serve(self, reader, writer):
        buffer = b''
        async for chunk in chunks(reader):
            if not buffer and len(chunk) < 8: sys.exit('devices.py: a first chunk without a whole header')
            buffer += chunk
            size = 8 + int.from_bytes(buffer[2:4], 'big')
            if len(buffer) > size: sys.exit('devices.py: a chunk with more than its message')
            if len(buffer) < size: continue
            answer, buffer = bytes(self.answer(buffer)), b''
            self.answers += 1
            if self.answers == 3: self.value = max(10, self.value // 2)
            for start in range(0, len(answer), self.value): put(writer, answer[start:start + self.value])
            await writer.drain()


async def server_of_theirs(ferry):
    image = bytes(range(255, -1, -1)) * 100
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'image')
        path.write_bytes(image)
        for buffers in [(2475, 4), (384, 2), None]:
            device = Server(182, buffers)
            server = await asyncio.start_server(device.serve, '127.0.0.1', 0)
            transport = ['--transport', f'tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}']

            async def run(*arguments, status=0):
                process = await asyncio.create_subprocess_exec(
                    ferry, 'smp', *map(str, arguments), *transport, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                out, err = await asyncio.wait_for(process.communicate(), LIMIT)
                check(process.returncode == status, f'{buffers}: ferry smp {" ".join(map(str, arguments[:2]))} ends with {status}')
                return (out + err).decode()

            check(await run('echo', 'hällo') == 'hällo\n', f'{buffers}: echo')
            await run('image', 'upload', path, '--window', 3)
            check(device.image == image, f'{buffers}: the image has arrived')
            await run('fs', 'put', path, '/lfs/a')
            check(device.files['/lfs/a'] == image, f'{buffers}: the file has arrived')
            await run('fs', 'get', '/lfs/a', Path(folder, 'back'))
            check(Path(folder, 'back').read_bytes() == image, f'{buffers}: and come back')
            await run('settings', 'set', 'a/b', '0aff')
            check(await run('settings', 'get', 'a/b') == '0aff\n', f'{buffers}: a setting')
            check('no such setting' in await run('settings', 'get', 'none', status=1), f'{buffers}: an error by its name')
            server.close()


async def serial_of_theirs(ferry):
    """ble-serial's client, with its own search for the characteristics, and `ferry serial --listen` at a pipe."""
    address = port()
    process = await asyncio.create_subprocess_exec(
        ferry, 'serial', '--listen', '--framing', 'lines', '--wait', '3600', '--transport', f'tcp:127.0.0.1:{address}',
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    nus = '6e40000{}-b5a3-f393-e0a9-e50e24dcca9e'.format
    received = bytearray()
    client = BLE_client('hci0')
    client.dev = Air(*await connected(address), nus(3))
    characteristics = [types.SimpleNamespace(uuid=nus(n), properties=p, handle=n)
                       for n, p in [(2, ['write', 'write-without-response']), (3, ['notify'])]]
    client.dev.services = [types.SimpleNamespace(characteristics=characteristics)]

    async def start_notify(characteristic, body):
        check(characteristic.uuid == nus(3), 'ble-serial finds the characteristic that notifies')
        client.listening = asyncio.create_task(client.dev.notify(body))

    client.dev.start_notify = start_notify
    client.set_receiver(received.extend)
    await client.setup_chars(None, None, 'rw', False)
    check(client.write_char.uuid == nus(2), 'and the one that is written')
    sending = asyncio.create_task(client.send_loop())
    lines = [bytes(f'line {n} '.encode() * (n % 40)) for n in range(1000)]
    stream = b'\n'.join(lines) + b'\n'
    for start in range(0, len(stream), 20): client.queue_send(stream[start:start + 20])
    echoed = await asyncio.wait_for(process.stdout.readexactly(len(stream)), LIMIT)
    check(echoed == stream, f'1000 lines from ble-serial, {len(stream)} bytes')
    process.stdin.write(stream)
    await process.stdin.drain()
    async with asyncio.timeout(LIMIT):
        while len(received) < len(stream): await asyncio.sleep(0.01)
    check(received == stream, f'1000 lines to ble-serial')
    client.stop_loop()
    await sending
    client.dev.writer.close()
    process.terminate()
    await process.wait()


async def main():
    ferry = os.path.abspath(sys.argv[1])
    await client_of_theirs(ferry)
    await server_of_theirs(ferry)
    await serial_of_theirs(ferry)


asyncio.run(main())
