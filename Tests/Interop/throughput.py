#!/usr/bin/env python3
"""`ferry bench --peer` beside the clients that others have, against the throughput services that others have, over two controllers
that pace by the connection interval: Bumble's own bench (PyPI), and Nordic's and Zephyr's services and clients rebuilt over
Bumble's host from their sources (nrf subsys/bluetooth/services/throughput.c and samples/bluetooth/throughput; Infineon's and
Zephyr's ble_gatt_tput). What Ferry measures lies within 5 % of what the peer measures of the same, and of what the other client
measures.   usage: throughput.py FERRY [MTU ...]   (FERRY built with the trait HCI)"""
import asyncio, json, logging, os, re, socket, sys, time
from bumble.device import ConnectionParametersPreferences, Device, Peer
from bumble.core import AdvertisingData, UUID
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.hci import Address, Phy
from bumble.transport import open_transport

LIMIT = 0.05
TRIES = 4
SECONDS = 3
INTERVAL = 15  # ms
PACKETS = 6  # in each connection event
SERVER, CLIENT = 'F1:F1:F1:F1:F1:F1', 'F0:F0:F0:F0:F0:F0'
NORDIC = UUID('0483DADD-6C9D-6CA9-5D41-03AD4FFF4ABB'), UUID(0x1524)
TPUT = (UUID('1AEC0D20-5D1E-43D3-AF17-080732CB7BCC'), UUID('D4707B26-85A3-4465-ADE4-AFB370CF58C7'),
        UUID('F7B01381-91E9-4D30-9E78-84675921251E'))
KINDS = {'nordic': ['write'], 'tput': ['write', 'notify'], 'bumble': ['write', 'notify']}
P = Characteristic.Properties


def length(mtu): return min(512, mtu - 3)


def kilobits(count, seconds): return count * 8 / seconds / 1000 if seconds > 0 else 0


class Window:
    """Keeps a few packets before the host's queue, so that the controller always has some, and no more."""

    def __init__(self, connection):
        self.queue, self.flow = connection.device.host.get_data_packet_queue(connection.handle), asyncio.Event()
        self.queue.on('flow', self.flow.set)

    async def room(self):
        while self.queue.pending >= 16:
            self.flow.clear()
            await self.flow.wait()

    async def drained(self):
        while self.queue.pending:
            self.flow.clear()
            await self.flow.wait()


class Meter:
    """What Nordic's server keeps: writes and bytes since a write of 1 byte, and their rate at the last of them. tput's clients do
    not begin so; the first value begins the time then, and does not count."""

    def __init__(self): self.writes = self.bytes = self.rate = 0; self.start = None

    def take(self, _, value):
        now = time.perf_counter()
        if len(value) == 1 or self.start is None: self.writes = self.bytes = self.rate = 0; self.start = now; return
        self.writes += 1
        self.bytes += len(value)
        self.rate = int(self.bytes * 8 / (now - self.start))

    def read(self, _): return b''.join(n.to_bytes(4, 'little') for n in (self.writes, self.bytes, self.rate))


class Server:
    """Nordic's service, or tput's, rebuilt."""

    def __init__(self, kind): self.kind, self.meter, self.task = kind, Meter(), None

    async def start(self, transport):
        self.transport = await open_transport(transport)
        self.device = device = Device.with_hci('peer', Address(SERVER), self.transport.source, self.transport.sink)
        value = CharacteristicValue(read=self.meter.read, write=self.meter.take)
        open_ = Characteristic.READABLE | Characteristic.WRITEABLE
        if self.kind == 'nordic':
            device.add_service(Service(NORDIC[0], [Characteristic(
                NORDIC[1], P.READ | P.WRITE | P.WRITE_WITHOUT_RESPONSE, open_, value)]))
        else:
            self.source = Characteristic(TPUT[2], P.NOTIFY, Characteristic.READABLE, b'')
            device.add_service(Service(TPUT[0], [
                Characteristic(TPUT[1], P.WRITE | P.WRITE_WITHOUT_RESPONSE, open_, value), self.source]))
            self.source.on('subscription', self.subscribed)
        await device.power_on()
        await device.start_advertising(auto_restart=False, advertising_data=bytes(
            AdvertisingData([(AdvertisingData.COMPLETE_LOCAL_NAME, b'peer')])))

    def subscribed(self, bearer, notify, _):
        if self.task: self.task.cancel(); self.task = None
        if notify: self.task = asyncio.ensure_future(self.notify(bearer))

    async def notify(self, bearer):
        window, value = Window(bearer), bytes([1]) * length(bearer.att_mtu)
        while True:
            await window.room()
            await self.device.notify_subscriber(bearer, self.source, value)

    async def stop(self):
        if self.task: self.task.cancel()
        await self.transport.close()


async def rebuilt(kind, direction, transport, mtu):
    """What the client of Nordic's sample, or of tput's, measures, in kbit/s."""
    async with await open_transport(transport) as hci:
        device = Device.with_hci('client', Address(CLIENT), hci.source, hci.sink)
        await device.power_on()
        connection = await device.connect(Address(SERVER), timeout=10, connection_parameters_preferences={
            Phy.LE_1M: ConnectionParametersPreferences(INTERVAL, INTERVAL)})
        await connection.set_data_length(251, 2120)
        peer = Peer(connection)
        await peer.request_mtu(mtu)
        service, = await peer.discover_service((NORDIC if kind == 'nordic' else TPUT)[0])
        await service.discover_characteristics()
        if direction == 'notify':
            source, = service.get_characteristics_by_uuid(TPUT[2])
            times, sizes, enough = [], [], asyncio.Event()

            def arrived(value):
                times.append(time.perf_counter())
                sizes.append(len(value))
                if times[-1] - times[0] >= SECONDS: enough.set()
            await source.subscribe(arrived)
            await asyncio.wait_for(enough.wait(), 10 * SECONDS)
            await source.unsubscribe(arrived)
            return kilobits(sum(sizes[1:]), times[-1] - times[0])
        sink, = service.get_characteristics_by_uuid((NORDIC if kind == 'nordic' else TPUT)[1])
        window, value, count = Window(connection), bytes([0x55]) * length(mtu), 0
        if kind == 'nordic': await sink.write_value(bytes(1))
        start = time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            await window.room()
            await sink.write_value(value)
            count += len(value)
        if kind == 'nordic': return int.from_bytes((await sink.read_value())[8:12], 'little') / 1000
        # tput's server tells no figure: the last write is across when the queue is empty.
        await window.drained()
        return kilobits(count, time.perf_counter() - start)


class Bench:
    """Bumble's own bench, as a program. Two of its gaps are filled: its GATT sides do not say whether they can receive, and its
    client writes without an answer where its server offers no such writes."""
    GAPS = '''
from bumble.apps import bench
for side in (bench.GattClient, bench.GattServer): side.can_receive = lambda self: True
async def send(self, packet): await self.speed_tx.write_value(packet, with_response=True)
bench.GattClient.send_packet = send
bench.main()
'''

    def __init__(self, *arguments): self.arguments = arguments

    async def start(self, ready=None):
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, '-c', self.GAPS, *self.arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        self.lines = []
        while ready:
            line = await asyncio.wait_for(self.line(), 20)
            if ready in line: return

    async def line(self):
        line = re.sub(r'\x1b\[\d*m', '', (await self.process.stdout.readline()).decode())
        if not line: sys.exit('throughput.py: bumble-bench ended:\n' + ''.join(self.lines[-20:]))
        self.lines.append(line)
        return line

    async def speed(self, receives):
        """In kbit/s: what the receiver has counted at the last packet, or what the sender has at the answer."""
        average = None
        while True:
            line = await asyncio.wait_for(self.line(), 60)
            if found := re.search(r'average=([0-9.]+)', line): average = float(found[1]) * 8 / 1000
            if ('Received last packet' if receives else 'Received ACK') in line: return average

    async def stop(self):
        if self.process.returncode is None: self.process.kill()
        await self.process.communicate()


def bumble_server(direction, transport, mtu):
    scenario = ['--scenario', 'receive', '--linger'] if direction == 'write' else [
        '--scenario', 'send', '-s', str(length(mtu)), '-c', '600', '-sd', '1']
    return Bench('--mode', 'gatt-server', *scenario, 'peripheral', transport)


async def bumble_client(direction, transport, mtu):
    """What bumble-bench measures against its like, in kbit/s."""
    # A request takes two connection events.
    scenario = ['--scenario', 'receive'] if direction == 'notify' else [
        '--scenario', 'send', '-s', str(length(mtu)), '-c', str(SECONDS * 1000 // (2 * INTERVAL)), '-sd', '0']
    bench = Bench('--mode', 'gatt-client', '--att-mtu', str(mtu), '--extended-data-length', '251/2120', *scenario, 'central',
                  '--peripheral', SERVER, '--ci', str(INTERVAL), transport)
    await bench.start()
    try:
        speed = await bench.speed(direction == 'notify')
        await asyncio.wait_for(bench.process.communicate(), 20)  # its answer to the last packet
        return speed
    finally: await bench.stop()


async def ferry(program, direction, transport, mtu):
    """What Ferry measures, and what the peer tells of the same if it does, in kbit/s."""
    process = await asyncio.create_subprocess_exec(
        program, 'bench', '--peer', SERVER, '--transport', f'hci:{transport}', '--mtu', str(mtu), '--interval', str(INTERVAL),
        '--seconds', str(SECONDS), '--direction', direction, '--json', stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    if process.returncode: sys.exit(f'throughput.py: ferry bench ended with {process.returncode}')
    measured = json.loads(out)['measured']
    if measured['attMTU'] != mtu: sys.exit(f'throughput.py: ATT_MTU is {measured["attMTU"]}, not {mtu}')
    return measured['goodput'], measured.get('byPeer')


async def point(program, kind, direction, mtu, ports):
    """Ferry's figure, the peer's of the same, and that of the other client."""
    here = [f'tcp-client:127.0.0.1:{port}' for port in ports]

    async def against(client):
        """What the client measures, and what the server does."""
        server = bumble_server(direction, here[0], mtu) if kind == 'bumble' else Server(kind)
        await (server.start('Waiting for connection') if kind == 'bumble' else server.start(here[0]))
        try:
            result = await client
            if kind == 'bumble': return result, await server.speed(direction == 'write')
            return result, server.meter.rate / 1000 if direction == 'write' else None
        finally:
            await server.stop()
            await asyncio.sleep(1)  # the controllers notice
    (mine, told), peer = await against(ferry(program, direction, f'tcp:127.0.0.1:{ports[1]}', mtu))
    theirs, _ = await against(
        bumble_client(direction, here[1], mtu) if kind == 'bumble' else rebuilt(kind, direction, here[1], mtu))
    return mine, told or peer, theirs


def port():
    with socket.create_server(('127.0.0.1', 0)) as server: return server.getsockname()[1]


async def main():
    program, mtus = sys.argv[1], [int(mtu) for mtu in sys.argv[2:]] or [23, 185, 247, 517]
    logging.getLogger('bumble').setLevel(logging.CRITICAL)
    ports = port(), port()
    controllers = await asyncio.create_subprocess_exec(
        sys.executable, '-u', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'controllers.py'),
        *(f'tcp-server:127.0.0.1:{port}' for port in ports), '--interval', '--per-event', str(PACKETS),
        stdout=asyncio.subprocess.PIPE)
    failed = 0
    try:
        for _ in range(2): await controllers.stdout.readline()  # one line each, once it listens
        for kind, directions in KINDS.items():
            for direction in directions:
                for mtu in mtus:
                    # What else the machine does only delays timers, so a point may be measured again.
                    for _ in range(TRIES):
                        mine, peer, theirs = await point(program, kind, direction, mtu, ports)
                        off = max(abs(mine / other - 1) for other in (peer, theirs) if other)
                        print(f'{kind:6} {direction:6} ATT_MTU {mtu:3}: ferry {mine:6.1f} kbit/s, the peer of the same '
                              f'{"  none" if peer is None else format(peer, "6.1f")}, the other client {theirs:6.1f}: '
                              f'{off:.1%} apart', flush=True)
                        if off <= LIMIT: break
                    else: failed += 1
    finally: controllers.kill()
    if failed: sys.exit(f'throughput.py: {failed} points are more than {LIMIT:.0%} apart')


asyncio.run(main())
