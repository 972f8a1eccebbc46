#!/usr/bin/env python3
"""Virtual Bluetooth controllers for the interop tests: Bumble 0.0.236 on one link, with the gaps filled that matter to
an external BLE host under test. Everything is done by subclassing: bumble itself is not edited.
usage: controllers_plus.py [TRANSPORT ...] [--acl-len 251] [--acl-num 8] [--rx-acl 251] [--interval] [--per-event 6]
  --acl-len/--acl-num  LE_Read_Buffer_Size answer          --rx-acl   fragment size controller->host
  --interval           pace ACL by the connection interval: <= --per-event LL packets a connection event and side,
                       Number_Of_Completed_Packets only after the (simulated) delivery, 1 event per interval
Fixes: Reset really resets (peer gets Disconnection 0x08); host socket loss = link loss 0x08 after the supervision
timeout; public own address works; legacy/extended report kind follows the command that started the scan; real
scan response; adv interval in 0.625 ms units; directed/whitelist connect; both sides see the same connection
parameters; RX fragmentation; LE_Set_Data_Length + LE_Set_PHY with events; Read_Remote_Version; Read_RSSI;
LE_Encrypt; bad-handle Disconnect; event masks; unknown command -> Command Complete 0x01, never silence."""
import argparse, asyncio, struct
from bumble import hci, ll, crypto, controller as bc
from bumble.controller import Controller, Connection
from bumble.link import LocalLink
from bumble.core import PhysicalTransport
from bumble.transport import open_transport

E, OK = hci.HCI_ErrorCode, hci.HCI_ErrorCode.SUCCESS
ap = argparse.ArgumentParser(); ap.add_argument('transports', nargs='*')
ap.add_argument('--acl-len', type=int, default=251); ap.add_argument('--acl-num', type=int, default=8)
ap.add_argument('--rx-acl', type=int, default=251); ap.add_argument('--interval', action='store_true')
ap.add_argument('--per-event', type=int, default=6)
opt = ap.parse_args()

class Link(LocalLink):
    def conn_of(self, sender, c):                      # find the peer's Connection object for connection c
        for k in self.controllers:
            if k is not sender:
                for d in k.le_connections.values():
                    if d.self_address == c.peer_address and d.peer_address == c.self_address: return k, d
        return None, None

class Conn:                                            # per-connection additions, kept beside bumble's Connection
    def __init__(s, c): s.c, s.q, s.parts, s.task, s.params, s.tx = c, [], bytearray(), None, (24, 0, 72), 27

class C(Controller):
    le_scan_legacy = True; masks_set = False
    def __init__(s, *a, **k):
        super().__init__(*a, **k); s.x = {}; s.white = set()
        s.le_acl_data_packet_length = opt.acl_len; s.total_num_le_acl_data_packets = opt.acl_num
        s.supported_max_tx_octets = s.supported_max_rx_octets = 251
        s.supported_max_tx_time = s.supported_max_rx_time = 17040
    # ---- event masks: only LE meta mask + never drop what the spec always delivers
    def send_hci_packet(s, p):
        if isinstance(p, hci.HCI_LE_Meta_Event) and s.masks_set and not (s.le_event_mask >> (p.subevent_code - 1)) & 1: return
        super().send_hci_packet(p)
    def on_hci_le_set_event_mask_command(s, cmd): s.masks_set = True; return super().on_hci_le_set_event_mask_command(cmd)
    # ---- unknown commands always get an answer
    def on_hci_command_packet(s, cmd):
        if getattr(s, f'on_{cmd.name.lower()}', None) is None and not cmd.name.startswith('x'):
            raw = struct.pack('<BBBBHB', 4, 0x0E, 4, 1, cmd.op_code, 1)
            if s.host: asyncio.get_running_loop().call_soon(s.host.on_packet, raw)
            return
        super().on_hci_command_packet(cmd)
    # ---- reset / link loss
    def drop_all(s, reason=E.CONNECTION_TIMEOUT_ERROR):
        for c in list(s.le_connections.values()):
            k, d = s.link.conn_of(s, c); x = s.x.pop(c.handle, None)
            if x and x.task: x.task.cancel()
            del s.le_connections[c.peer_address]
            if d:                                      # the peer notices after its supervision timeout
                t = (x.params[2] if x else 72) * 0.01
                asyncio.get_running_loop().call_later(t, k.lost, d, reason)
        s.le_legacy_advertiser.stop(); [a.stop() for a in s.advertising_sets.values()]; s.advertising_sets.clear()
        s.le_scan_enable = False; s.pending_le_connection = None; s.white.clear(); s.masks_set = False
        s.le_legacy_advertiser.advertising_data = s.le_legacy_advertiser.scan_response_data = b''
    def lost(s, d, reason):
        if s.le_connections.get(d.peer_address) is d: s.on_le_disconnected(d, reason)
    def on_le_disconnected(s, c, reason):
        x = s.x.pop(c.handle, None)
        if x and x.task: x.task.cancel()
        super().on_le_disconnected(c, reason)
    def on_hci_reset_command(s, cmd): s.drop_all(); return super().on_hci_reset_command(cmd)
    def on_hci_disconnect_command(s, cmd):
        c = s.find_le_connection_by_handle(cmd.connection_handle)
        if not c: return s._send_hci_command_status(E.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, cmd.op_code)
        s._send_hci_command_status(0, cmd.op_code)
        c.send_ll_control_pdu(ll.TerminateInd(cmd.reason)); s.on_le_disconnected(c, E.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)
    # ---- advertising / scanning
    def on_hci_le_set_advertising_parameters_command(s, cmd):
        r = super().on_hci_le_set_advertising_parameters_command(cmd)
        s.le_legacy_advertiser.advertising_interval_min = max(20, cmd.advertising_interval_min * 0.625); return r   # bumble divides by 1000
    def on_hci_le_set_scan_enable_command(s, cmd): s.le_scan_legacy = True; s.seen = set(); return super().on_hci_le_set_scan_enable_command(cmd)
    def on_hci_le_set_extended_scan_enable_command(s, cmd): s.le_scan_legacy = False; s.seen = set(); return super().on_hci_le_set_extended_scan_enable_command(cmd)
    def on_hci_le_set_extended_scan_parameters_command(s, cmd):
        s.le_scan_type = cmd.scan_types[0] if cmd.scan_types else 0; return super().on_hci_le_set_extended_scan_parameters_command(cmd)
    def on_hci_le_clear_filter_accept_list_command(s, cmd): s.white.clear(); return super().on_hci_le_clear_filter_accept_list_command(cmd)
    def on_hci_le_add_device_to_filter_accept_list_command(s, cmd): s.white.add(bytes(cmd.address)); return super().on_hci_le_add_device_to_filter_accept_list_command(cmd)
    def on_hci_le_create_connection_cancel_command(s, cmd):
        if not s.pending_le_connection: return hci.HCI_StatusReturnParameters(E.COMMAND_DISALLOWED_ERROR)
        s.pending_le_connection = None
        asyncio.get_running_loop().call_soon(s.send_hci_packet, hci.HCI_LE_Connection_Complete_Event(status=E.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, connection_handle=0, role=0, peer_address_type=0, peer_address=hci.Address.ANY, connection_interval=0, peripheral_latency=0, supervision_timeout=0, central_clock_accuracy=0))
        return hci.HCI_StatusReturnParameters(OK)
    def send_advertising_pdu(s, pdu):                  # an advertising set with legacy PDUs (property bit 4) sends legacy PDUs
        if isinstance(pdu, ll.AdvExtInd) and any(a.address == pdu.advertiser_address and a.parameters.advertising_event_properties & 0x10 for a in s.advertising_sets.values()):
            pdu = ll.AdvInd(advertiser_address=pdu.advertiser_address, data=pdu.data)
        super().send_advertising_pdu(pdu)
    def on_advertising_pdu(s, pdu):
        src = next((k for k in s.link.controllers if k is not s and (k.le_legacy_advertiser.enabled and k.le_legacy_advertiser.address == pdu.advertiser_address or any(a.enabled and a.address == pdu.advertiser_address for a in k.advertising_sets.values()))), None)
        legacy = isinstance(pdu, ll.AdvInd); rsp = b''
        if src: rsp = src.le_legacy_advertiser.scan_response_data if src.le_legacy_advertiser.enabled else b''.join(bytes(a.scan_response_data) for a in src.advertising_sets.values() if a.address == pdu.advertiser_address)
        key = bytes(pdu.advertiser_address)
        if s.le_scan_enable and not (s.filter_duplicates and key in s.seen):
            s.seen.add(key); a = pdu.advertiser_address
            if s.le_scan_legacy and legacy:
                R, T = hci.HCI_LE_Advertising_Report_Event.Report, hci.HCI_LE_Advertising_Report_Event.EventType
                for t, d in ((T.ADV_IND, pdu.data),) + (((T.SCAN_RSP, rsp),) if s.le_scan_type else ()):
                    s.send_hci_packet(hci.HCI_LE_Advertising_Report_Event([R(event_type=t, address_type=a.address_type, address=a, data=d, rssi=-50)]))
            elif not s.le_scan_legacy:
                R = hci.HCI_LE_Extended_Advertising_Report_Event.Report
                for t, d in ((0x13 if legacy else 0x01, pdu.data),) + (((0x1B if legacy else 0x0A, rsp),) if s.le_scan_type and (rsp or legacy) else ()):
                    s.send_hci_packet(hci.HCI_LE_Extended_Advertising_Report_Event([R(event_type=t, address_type=a.address_type, address=a, primary_phy=1, secondary_phy=0 if legacy else 1, advertising_sid=0xFF if legacy else pdu.sid, tx_power=127, rssi=-50, periodic_advertising_interval=0, direct_address_type=0, direct_address=hci.Address.ANY, data=d)]))
        p = s.pending_le_connection
        if p:
            if p.initiator_filter_policy == 1 and key in s.white: p.peer_address = pdu.advertiser_address
            if p.peer_address == pdu.advertiser_address: s.create_le_connection(pdu.advertiser_address)
    # ---- connections: same parameters on both sides
    def create_le_connection(s, peer):
        p = s.pending_le_connection; ext = isinstance(p, hci.HCI_LE_Extended_Create_Connection_Command)
        pr = (p.connection_interval_mins[0], p.max_latencies[0], p.supervision_timeouts[0]) if ext else (p.connection_interval_min, p.max_latency, p.supervision_timeout)
        super().create_le_connection(peer); c = s.le_connections[peer]; s.add(c, pr)
    def on_le_connect_ind(s, pkt):
        s.cpr = (pkt.interval, pkt.latency, pkt.timeout); hold, s.send_hci_packet = s.send_hci_packet, s.fix_cc
        try: super().on_le_connect_ind(pkt)
        finally: del s.send_hci_packet
        if c := s.le_connections.get(pkt.initiator_address): s.add(c, s.cpr)
    def fix_cc(s, p):
        if isinstance(p, hci.HCI_LE_Connection_Complete_Event): p = hci.HCI_LE_Connection_Complete_Event(status=p.status, connection_handle=p.connection_handle, role=p.role, peer_address_type=p.peer_address_type, peer_address=p.peer_address, connection_interval=s.cpr[0], peripheral_latency=s.cpr[1], supervision_timeout=s.cpr[2], central_clock_accuracy=0)
        C.send_hci_packet(s, p)
    def add(s, c, pr):
        x = s.x[c.handle] = Conn(c); x.params = pr
        if opt.interval: x.task = asyncio.ensure_future(s.pump(x))
    def on_hci_le_connection_update_command(s, cmd):
        super().on_hci_le_connection_update_command(cmd); pr = (cmd.connection_interval_max, cmd.max_latency, cmd.supervision_timeout)
        if c := s.find_le_connection_by_handle(cmd.connection_handle):
            s.x[c.handle].params = pr; k, d = s.link.conn_of(s, c)
            if d: k.x[d.handle].params = pr
    # ---- data path
    def on_hci_acl_data_packet(s, p):
        c = s.find_le_connection_by_handle(p.connection_handle)
        if not c: return
        x = s.x[c.handle]
        if len(p.data) > s.le_acl_data_packet_length: print(f'!! {s.name}: host sent ACL of {len(p.data)} > {s.le_acl_data_packet_length}', flush=True)
        if len(x.q) >= s.total_num_le_acl_data_packets: print(f'!! {s.name}: host overran ACL buffers ({len(x.q)+1} > {s.total_num_le_acl_data_packets})', flush=True)
        if opt.interval: x.q.append(p)
        else: s.deliver(x, p); s.nocp(c.handle, 1)
    def nocp(s, h, n): s.send_hci_packet(hci.HCI_Number_Of_Completed_Packets_Event(connection_handles=[h], num_completed_packets=[n]))
    async def pump(s, x):
        # Both sides' events are at the same times, so that an answer goes in the event after its question's.
        loop, step = asyncio.get_running_loop(), x.params[0] * 0.00125; nxt = loop.time() // step * step
        while True:
            nxt += x.params[0] * 0.00125; await asyncio.sleep(max(0, nxt - loop.time()))
            n = budget = 0
            while x.q and budget < opt.per_event:
                p = x.q.pop(0); budget += -(-max(1, len(p.data)) // x.tx); s.deliver(x, p); n += 1   # an ACL packet costs ceil(len/LL payload) LL packets
            if n: s.nocp(x.c.handle, n)
    def deliver(s, x, p):
        x.parts = bytearray(p.data) if p.pb_flag in (0, 2) else x.parts + p.data
        if len(x.parts) < 4 or len(x.parts) < 4 + struct.unpack_from('<H', x.parts)[0]: return
        pdu, x.parts = bytes(x.parts), bytearray()
        k, d = s.link.conn_of(s, x.c)
        if d: asyncio.get_running_loop().call_soon(k.rx, d, pdu)
    def rx(s, d, pdu):
        for o in range(0, len(pdu), opt.rx_acl):
            f = pdu[o:o + opt.rx_acl]; s.send_hci_packet(hci.HCI_AclDataPacket(d.handle, 2 if o == 0 else 1, 0, len(f), f))
    # ---- commands bumble lacks
    def _c(s, cmd): return s.find_le_connection_by_handle(cmd.connection_handle)
    def on_hci_le_set_data_length_command(s, cmd):
        c = s._c(cmd)
        if not c: return hci.HCI_StatusAndConnectionHandleReturnParameters(status=E.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, connection_handle=cmd.connection_handle)
        n = min(251, cmd.tx_octets); k, d = s.link.conn_of(s, c)
        def ev():
            for kk, cc in ((s, c), (k, d)):
                if cc: kk.x[cc.handle].tx = n; kk.send_hci_packet(hci.HCI_LE_Data_Length_Change_Event(connection_handle=cc.handle, max_tx_octets=n, max_tx_time=(n + 14) * 8, max_rx_octets=n, max_rx_time=(n + 14) * 8))
        asyncio.get_running_loop().call_soon(ev)
        return hci.HCI_StatusAndConnectionHandleReturnParameters(status=OK, connection_handle=cmd.connection_handle)
    def on_hci_le_set_phy_command(s, cmd):
        c = s._c(cmd); s._send_hci_command_status(0 if c else E.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, cmd.op_code)
        if c:
            phy = 2 if cmd.tx_phys & 2 and not cmd.all_phys & 1 else 1; k, d = s.link.conn_of(s, c)
            for kk, cc in ((s, c), (k, d)):
                if cc: kk.send_hci_packet(hci.HCI_LE_PHY_Update_Complete_Event(status=0, connection_handle=cc.handle, tx_phy=phy, rx_phy=phy))
    def on_hci_read_remote_version_information_command(s, cmd):
        c = s._c(cmd); s._send_hci_command_status(0 if c else E.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, cmd.op_code)
        if c: s.send_hci_packet(hci.HCI_Read_Remote_Version_Information_Complete_Event(status=0, connection_handle=c.handle, version=9, manufacturer_name=0xFFFF, subversion=0))
    def on_hci_read_rssi_command(s, cmd): return hci.HCI_Read_RSSI_ReturnParameters(status=0, handle=cmd.handle, rssi=-50)
    def on_hci_le_write_suggested_default_data_length_command(s, cmd):
        return hci.HCI_StatusReturnParameters(OK)
    def raw_complete(s, op, ret):
        asyncio.get_running_loop().call_soon(s.host.on_packet, struct.pack('<BBBBH', 4, 0x0E, 3 + len(ret), 1, op) + ret)
    def on_hci_le_encrypt_command(s, cmd):
        b = bytes(cmd)[4:]; s.raw_complete(cmd.op_code, b'\0' + crypto.e(b[:16], b[16:32]))   # e() takes/gives little-endian

async def main():
    link, keep = Link(), []
    for i, spec in enumerate(opt.transports or ['tcp-server:127.0.0.1:9001', 'tcp-server:127.0.0.1:9002']):
        t = await open_transport(spec)
        c = C(f'C{i}', host_source=t.source, host_sink=t.sink, link=link, public_address=f'00:00:00:00:00:{i+1:02X}'); keep += [t, c]
        # host socket closed = radio silence: poll the sink's transport (tcp-server/unix-server set it to None)
        async def watch(c=c, sink=t.sink):
            up = False
            while True:
                now = getattr(sink, 'transport', None) is not None
                if up and not now: print(f'{c.name}: host gone', flush=True); c.drop_all()
                up = now; await asyncio.sleep(0.02)
        if 'server' in spec: keep.append(asyncio.ensure_future(watch()))
        print(f'C{i} {c.public_address} on {spec}', flush=True)
    await asyncio.get_running_loop().create_future()
asyncio.run(main())
