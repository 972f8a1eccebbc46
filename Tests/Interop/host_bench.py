#!/usr/bin/env python3
"""How many notifications a second Bumble 0.0.236's host sends to its like, through the controllers that Ferry is measured
through.   usage: host_bench.py PORT_P PORT_C COUNT LENGTH"""
import asyncio, sys, time
from bumble.device import Device, Peer
from bumble.core import AdvertisingData, UUID
from bumble.gatt import Characteristic, Service
from bumble.hci import Address
from bumble.transport import open_transport
SVC, CHR = UUID('E07F0AE8-00BB-47F5-94F4-4A7174EA3032'), UUID('9D534E8B-2153-4F6D-B2B0-8C68665A7274')
N, L = int(sys.argv[3]), int(sys.argv[4])

async def main():
    async with await open_transport(f'tcp-client:127.0.0.1:{sys.argv[1]}') as a, await open_transport(f'tcp-client:127.0.0.1:{sys.argv[2]}') as b:
        p = Device.with_hci('p', Address('F1:F1:F1:F1:F1:F1'), a.source, a.sink)
        c = Device.with_hci('c', Address('F0:F0:F0:F0:F0:F0'), b.source, b.sink)
        ch = Characteristic(CHR, Characteristic.Properties.NOTIFY, Characteristic.READABLE, b'')
        p.add_service(Service(SVC, [ch]))
        subscribed, got, done = asyncio.get_running_loop().create_future(), 0, asyncio.Event()
        @ch.on('subscription')
        def _(bearer, notify, indicate):
            if notify and not subscribed.done(): subscribed.set_result(bearer)
        await p.power_on(); await c.power_on()
        await p.start_advertising(auto_restart=False)
        conn = await c.connect(Address('F1:F1:F1:F1:F1:F1'), timeout=10)
        peer = Peer(conn); await peer.request_mtu(247)
        svc, = await peer.discover_service(SVC)
        remote, = await svc.discover_characteristics()
        def on(v):
            nonlocal got
            got += 1
            if got >= N: done.set()
        await remote.subscribe(on)
        bearer = await subscribed
        cpu, t = time.process_time(), time.perf_counter()
        for i in range(N): await p.notify_subscriber(bearer, ch, bytes(L))
        await asyncio.wait_for(done.wait(), 60)
        t = time.perf_counter() - t; cpu = time.process_time() - cpu
        print(f'Bumble host {L} bytes: {N / t:.0f} values/s, {cpu / N * 1e6:.1f} us of processor each, both ends', flush=True)
    import os; os._exit(0)
asyncio.run(main())
