#!/usr/bin/env python3
"""A Bluetooth LE peer for the interop tests: Bumble 0.0.236's host in either role.
usage: peer.py central TRANSPORT [options] ACTION...      does the actions one after the other, then disconnects
       peer.py peripheral TRANSPORT [options]             serves until it is ended
options: --io 0..4 (IO capability)  --mitm  --legacy (no Secure Connections)  --no-bond  --wrong (says that numbers differ)
         --oob (prints its out-of-band data, reads CONFIRM:RANDOM of the other side or -)  --tk HEX (the same for --legacy)
         --eatt (takes enhanced ATT bearers)
         --enhanced (uses a request for several channels itself)
         --ways (as peripheral: reads a line IO:SC before each connection, and has no keys of earlier ones)
         --offload (the controller resolves addresses, not this host)
         --wait (as central: says that it is ready, and reads a line before it looks for anybody)
         --address F0:..  --name NAME (which peripheral to look for)  --snoop FILE
actions: mtu=N  read  read=UUID  write=N  command=N  notify=N  indicate=N (N bytes expected)  pair  encrypt  coc=PSM:N (echo)
         ecoc=PSM:N:COUNT (the same through channels opened by one request)
         eatt=N (opens so many enhanced ATT bearers, and reads the value by all of them at once)
         hash (the Database Hash, against one made of what is found)  features=N (Client Supported Features)
         try=IO:SC (pairs with that capability, SC 1 for Secure Connections; reads a line before and one after)
         rejoin (reads a line, disconnects, looks for the bonded peer by its key, whatever its address is now, encrypts, and
         says whether its address is one that it has not had before)
         hold (until the connection ends)  reconnect  line (waits for a line on standard input)
Values of N bytes are i*31 & 0xFF for i in 0..<N. A passkey to enter is read from standard input."""
import argparse, asyncio, sys
from bumble import att, crypto, hci, l2cap
from bumble.core import AdvertisingData, ProtocolError, UUID
from bumble.device import Device, DeviceConfiguration, Peer
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.gatt_client import Client
from bumble.hci import Address
from bumble.host import Host
from bumble.keys import MemoryKeyStore
from bumble.pairing import PairingConfig, PairingDelegate
from bumble.smp import OobContext, OobLegacyContext, OobSharedData
from bumble.snoop import BtSnooper
from bumble.transport import open_transport

SVC = UUID('E07F0AE8-00BB-47F5-94F4-4A7174EA3032')
CHR = UUID('9D534E8B-2153-4F6D-B2B0-8C68665A7274')
SECRET = UUID('9D534E8B-2153-4F6D-B2B0-8C68665A7275')  # needs an encrypted link
PSM = 0x80
ap = argparse.ArgumentParser()
ap.add_argument('role'); ap.add_argument('transport'); ap.add_argument('actions', nargs='*')
ap.add_argument('--io', type=int, default=3); ap.add_argument('--mitm', action='store_true')
ap.add_argument('--legacy', action='store_true'); ap.add_argument('--no-bond', action='store_true')
ap.add_argument('--wrong', action='store_true'); ap.add_argument('--address'); ap.add_argument('--name')
ap.add_argument('--eatt', action='store_true'); ap.add_argument('--oob', action='store_true'); ap.add_argument('--tk'); ap.add_argument('--ways', action='store_true'); ap.add_argument('--snoop'); ap.add_argument('--enhanced', action='store_true')
ap.add_argument('--offload', action='store_true'); ap.add_argument('--wait', action='store_true')
opt = ap.parse_intermixed_args()
P = 'C:' if opt.role == 'central' else 'P:'
def say(*a): print(P, *a, flush=True)
def pattern(n): return bytes(i * 31 & 0xFF for i in range(n))
async def line(): return (await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)).strip()

way = -1  # which of several pairings this is, where it matters
def which(): return '' if way < 0 else f'{way} '

class Delegate(PairingDelegate):
    async def compare_numbers(self, number, digits):
        say(f'compares {which()}{number:06}'); return not opt.wrong
    async def get_number(self):
        say(f'asks {which()}for the passkey'); return int(await line())
    async def display_number(self, number, digits): say(f'shows {which()}{number:06}')

own, theirs = OobContext(), None

# Most significant octet first, as the specification writes them; Bumble has them the other way round.
async def trade(dev):
    global theirs
    data = own.share()
    say('shares', dev.random_address, data.c[::-1].hex(), data.r[::-1].hex())
    say('takes data')
    text = await line()
    if text != '-': theirs = OobSharedData(*(bytes.fromhex(part)[::-1] for part in text.split(':')))

def oob():
    if opt.tk: return PairingConfig.OobConfig(None, None, OobLegacyContext(bytes.fromhex(opt.tk)[::-1]))
    return PairingConfig.OobConfig(own, theirs, None) if opt.oob else None

async def set_way(dev, text):
    global way
    io, sc = map(int, text.split(':'))
    opt.io, opt.legacy, opt.mitm, way = io, not sc, io != 3, way + 1
    await dev.keystore.delete_all()

def device(t, address):
    config = DeviceConfiguration(name='peer', address=Address(opt.address or address), eatt_enabled=opt.eatt, address_resolution_offload=opt.offload)
    dev = Device(config=config, host=Host(controller_source=t.source, controller_sink=t.sink))
    dev.keystore = MemoryKeyStore()
    dev.pairing_config_factory = lambda c: PairingConfig(
        sc=not opt.legacy, mitm=opt.mitm, bonding=not opt.no_bond, oob=oob(), delegate=Delegate(PairingDelegate.IoCapability(opt.io)))
    if opt.snoop: dev.host.snooper = BtSnooper(open(opt.snoop, 'wb', buffering=0))
    return dev

def watch(conn):
    gone = asyncio.Event()
    @conn.on('disconnection')
    def _(reason): say(f'disconnected 0x{reason:02X}'); gone.set()
    @conn.on('pairing')
    def _(keys): say('paired', 'authenticated' if keys.ltk and keys.ltk.authenticated else 'keys' if keys.ltk or keys.ltk_central else 'without keys')
    @conn.on('pairing_failure')
    def _(reason): say(f'pairing failed 0x{int(reason):02X}')
    @conn.on('connection_encryption_change')
    def _(): say('encrypted' if conn.is_encrypted else 'not encrypted')
    return gone

async def connect(dev):
    found = asyncio.get_running_loop().create_future()
    @dev.on('advertisement')
    def on(adv):
        u = adv.data.get(AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS) or []
        name = adv.data.get(AdvertisingData.COMPLETE_LOCAL_NAME)
        if SVC in u and opt.name in (None, name) and not found.done(): found.set_result(adv.address)
    await dev.start_scanning(filter_duplicates=False)
    addr = await asyncio.wait_for(found, 20)
    await dev.stop_scanning()
    dev.remove_listener('advertisement', on)
    conn = await dev.connect(addr, timeout=10)
    say('connected')
    return conn, watch(conn)

# What the peer is called on the air: by this host's resolving, or by the controller's, which Bumble does not keep where it
# names the peer by its plain address.
def name_on_air(dev, conn): return str(conn.peer_resolvable_address or getattr(dev.host, 'resolved', None))

def keep_resolved(host):
    whole = host.on_hci_le_connection_complete_event
    def on(event):
        host.resolved = getattr(event, 'peer_resolvable_private_address', None)
        if host.resolved and not any(bytes(host.resolved)): host.resolved = None
        whole(event)
    host.on_hci_le_connection_complete_event = on

async def collect(ch, n, indications):
    buf, done = bytearray(), asyncio.Event()
    def on(v):
        buf.extend(v)
        if len(buf) >= n: done.set()
    await ch.subscribe(on, prefer_notify=not indications)
    say('subscribed')
    await asyncio.wait_for(done.wait(), 20)
    say('collected', len(buf), 'match =', bytes(buf) == pattern(n))

# Sends n bytes over a channel, and returns what comes back.
async def echoed(ch, n):
    buf, done = bytearray(), asyncio.Event()
    def sink(b):
        buf.extend(b)
        if len(buf) >= n: done.set()
    ch.sink = sink
    for o in range(0, n, ch.peer_mtu): ch.write(pattern(n)[o:o + ch.peer_mtu])
    await asyncio.wait_for(done.wait(), 20)
    return bytes(buf)

async def long_write(client, handle, value, mtu):
    for o in range(0, len(value), mtu - 5):
        part = value[o:o + mtu - 5]
        r = await client.send_request(att.ATT_Prepare_Write_Request(attribute_handle=handle, value_offset=o, part_attribute_value=part))
        assert r.op_code == att.Opcode.ATT_PREPARE_WRITE_RESPONSE and r.part_attribute_value == part and r.value_offset == o, r
    r = await client.send_request(att.ATT_Execute_Write_Request(flags=1))
    say('wrote' if r.op_code == att.Opcode.ATT_EXECUTE_WRITE_RESPONSE else f'refused 0x{r.error_code:02X}')

async def check_hash(peer):
    # What the hash is of (Core Specification 5.4, Vol 3, Part G, 7.3.1), as it is found over the air.
    read, = await peer.read_characteristics_by_uuid(UUID.from_16_bits(0x2B2A))
    made = b''
    for a in await peer.discover_attributes():
        kind = int.from_bytes(a.type.uuid_bytes, 'little') if len(a.type.uuid_bytes) == 2 else 0
        if kind in (0x2800, 0x2801, 0x2802, 0x2803, 0x2900):
            made += a.handle.to_bytes(2, 'little') + a.type.uuid_bytes + await a.read_value()
        elif 0x2901 <= kind <= 0x2905:
            made += a.handle.to_bytes(2, 'little') + a.type.uuid_bytes
    say('hash', len(made), 'match =', bytes(read) == crypto.aes_cmac(made, bytes(16))[::-1])

async def set_features(peer, bits):
    await peer.discover_services(); await peer.discover_characteristics()
    ch, = peer.get_characteristics_by_uuid(UUID.from_16_bits(0x2B29))
    await ch.write_value(bytes([bits]), with_response=True)
    say('features', (await ch.read_value())[0])

def split_values(dev):
    # Bumble does not know Multiple Handle Value Notifications: each is handed to it as single ones.
    whole = dev.on_gatt_pdu
    def on(conn, pdu):
        if pdu[0] != 0x23: return whole(conn, pdu)
        n, o = 0, 1
        while o < len(pdu):
            count = int.from_bytes(pdu[o + 2:o + 4], 'little')
            whole(conn, bytes([0x1B]) + pdu[o:o + 2] + pdu[o + 4:o + 4 + count])
            n, o = n + 1, o + 4 + count
        say('several', n, 'whole =', o == len(pdu))
    dev.l2cap_channel_manager.register_fixed_channel(att.ATT_CID, on)

async def act(dev, conn, gone, action, found):
    verb, _, arg = action.partition('=')
    if verb == 'mtu': say('mtu', await found['peer'].request_mtu(int(arg))); return
    if verb == 'hash': await check_hash(found['peer']); return
    if verb == 'features': await set_features(found['peer'], int(arg)); return
    if verb == 'pair': await conn.pair(); return
    if verb == 'try':
        await line(); await set_way(dev, arg)
        try: await conn.pair(); say('tried', arg, 'encrypted =', conn.is_encrypted)
        except ProtocolError as e: say('tried', arg, e)
        await line(); return
    if verb == 'encrypt': await conn.encrypt(); return
    if verb == 'hold': await gone.wait(); return
    if verb == 'line': await line(); return
    if verb == 'coc':
        psm, n = map(int, arg.split(':'))
        ch = await conn.create_l2cap_channel(l2cap.LeCreditBasedChannelSpec(psm, max_credits=10, mtu=1000, mps=200))
        back = await echoed(ch, n)
        say('echoed', len(back), 'match =', back == pattern(n))
        await ch.disconnect(); return
    if verb == 'ecoc':
        psm, n, count = map(int, arg.split(':'))
        spec = l2cap.LeCreditBasedChannelSpec(psm, max_credits=10, mtu=1000, mps=200)
        channels = await dev.l2cap_channel_manager.create_enhanced_credit_based_channels(conn, spec, count)
        back = await asyncio.gather(*(echoed(ch, n) for ch in channels))
        say('echoed by', len(channels), 'match =', all(each == pattern(n) for each in back))
        return
    if 'ch' not in found:
        svc, = await found['peer'].discover_service(SVC)
        found['all'] = await svc.discover_characteristics()
        found['ch'], = [c for c in found['all'] if c.uuid == CHR]
    ch = found['ch']
    if verb == 'eatt':
        clients = await Client.connect_eatt(conn, count=int(arg))
        values = await asyncio.gather(*(c.read_value(ch.handle) for c in (clients if int(arg) > 1 else [clients])))
        say('read by', len(values), 'bearers match =', all(bytes(v) == pattern(400) for v in values))
        return
    try:
        if verb == 'read':
            c = next(c for c in found['all'] if c.uuid == UUID(arg)) if arg else ch
            v = await c.read_value()
            say('read', len(v), 'match =', bytes(v) == pattern(len(v)))
        elif verb == 'write':
            mtu = conn.att_mtu; v = pattern(int(arg))
            if len(v) <= mtu - 3: await ch.write_value(v, with_response=True); say('wrote')
            else: await long_write(found['peer'].gatt_client, ch.handle, v, mtu)
        elif verb == 'command': await ch.write_value(pattern(int(arg)), with_response=False)
        elif verb in ('notify', 'indicate'): await collect(ch, int(arg), verb == 'indicate')
    except att.ATT_Error as e: say(f'refused 0x{e.error_code:02X}')

async def central(dev):
    split_values(dev); keep_resolved(dev.host)
    await dev.power_on()
    if opt.wait: say('ready'); await line()
    conn, gone = await connect(dev)
    found, seen = {'peer': Peer(conn)}, set()
    for action in opt.actions:
        if action == 'reconnect':
            await conn.disconnect(); await gone.wait()
            conn, gone = await connect(dev); found = {'peer': Peer(conn)}
            continue
        if action == 'rejoin':
            seen.add(name_on_air(dev, conn)); await line()
            await conn.disconnect(); await gone.wait()
            (_, identity), = await dev.keystore.get_resolving_keys()
            conn = await dev.connect(identity, timeout=20)
            gone, found = watch(conn), {'peer': Peer(conn)}
            say('rejoined', conn.peer_address == identity, 'anew =', name_on_air(dev, conn) not in {'None', *seen})
            await conn.encrypt(); continue
        try: await act(dev, conn, gone, action, found)
        except ProtocolError as e: say(f'{action} failed: {e}')
        if gone.is_set(): break
    if not gone.is_set():
        try: await conn.disconnect(); await asyncio.wait_for(gone.wait(), 5)
        except Exception as e: say('left', e)
    say('done')

async def peripheral(dev):
    held = {'value': pattern(400)}
    def written(c, v): held['value'] = bytes(v); say('written', len(v), 'match =', bytes(v) == pattern(len(v)))
    R, W = Characteristic.Properties, Characteristic.Permissions
    ch = Characteristic(CHR, R.READ | R.WRITE | R.WRITE_WITHOUT_RESPONSE | R.NOTIFY | R.INDICATE, W.READABLE | W.WRITEABLE,
                        CharacteristicValue(read=lambda c: held['value'], write=written))
    secret = Characteristic(SECRET, R.READ, W.READABLE | (W.READ_REQUIRES_AUTHENTICATION if opt.mitm else W.READ_REQUIRES_ENCRYPTION), pattern(30))
    dev.add_service(Service(SVC, [ch, secret]))
    @ch.on('subscription')
    def _(conn, notify, indicate):
        say(f'subscription {notify} {indicate}')
        async def send():
            for o in range(0, 600, 20):
                if notify: await dev.notify_subscriber(conn, ch, pattern(600)[o:o + 20])
                else: await dev.indicate_subscriber(conn, ch, pattern(600)[o:o + 20])
            say('sent')
        if notify or indicate: asyncio.ensure_future(send())
    def on_channel(c):
        say('channel', c.peer_mtu)
        def sink(data):
            for o in range(0, len(data), c.peer_mtu): c.write(data[o:o + c.peer_mtu])
        c.sink = sink
    dev.create_l2cap_server(l2cap.LeCreditBasedChannelSpec(PSM, max_credits=10, mtu=1000, mps=200), on_channel)
    @dev.on('connection')
    def _(conn):
        say('connected'); watch(conn)
        if conn.peer_resolvable_address: say('knows', conn.peer_address, 'as', conn.peer_resolvable_address)
        async def show():
            spec = l2cap.LeCreditBasedChannelSpec(0x99, max_credits=10, mtu=1000, mps=200)
            try: await dev.l2cap_channel_manager.create_enhanced_credit_based_channels(conn, spec, 2)
            except ProtocolError as e: say('refused', e.error_code)
        if opt.enhanced: asyncio.ensure_future(show())
    await dev.power_on()
    dev.advertising_data = bytes(AdvertisingData([
        (AdvertisingData.FLAGS, bytes([6])), (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, SVC.to_bytes())]))
    await dev.start_advertising(auto_restart=True)
    say('advertising')
    while opt.ways:
        gone = asyncio.Event()
        dev.once('connection', lambda conn: conn.on('disconnection', lambda _: gone.set()))
        await set_way(dev, await line()); say('ready')
        await gone.wait()
    await asyncio.get_running_loop().create_future()

async def main():
    async with await open_transport(opt.transport) as t:
        dev = device(t, 'F0:F0:F0:F0:F0:F0' if opt.role == 'central' else 'F1:F1:F1:F1:F1:F1')
        if opt.oob: await trade(dev)
        await (central if opt.role == 'central' else peripheral)(dev)
    import os; os._exit(0)  # a thread may still wait for standard input
asyncio.run(main())
