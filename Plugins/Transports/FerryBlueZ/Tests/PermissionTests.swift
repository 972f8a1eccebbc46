#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerrySequenced
    import Glibc
    import TestSupport
    import Testing

    /// Somebody who is not root, where the bus lets only root and the group bluetooth talk to bluetoothd.
    @Suite(
        .tags(.adapter),
        .enabled(if: Machine.isHere && geteuid() != 0, "runs in the virtual machine: scripts/interop bluez"),
        .serialized, .timeLimit(.minutes(5)))
    struct PermissionTests {
        /// The group bluetooth is 112 in the virtual machine.
        private static let isMember: Bool = {
            var groups = [gid_t](repeating: 0, count: 64)
            let count = getgroups(64, &groups)
            return count > 0 && groups.prefix(Int(count)).contains(112)
        }()

        @Test(.enabled(if: !isMember)) func whoMayNotIsToldWhatToDo() async throws {
            let error = await #expect(throws: BluetoothError.self) { _ = try await BlueZAdapter.open("bluez:hci0") }
            #expect(error?.code == .notPoweredOn)
            let text = error?.message ?? ""
            #expect(
                text.hasPrefix("bluez:hci0 cannot be opened: The system bus does not let this user talk to bluetoothd"))
            #expect(text.contains("adduser USER bluetooth"), "\(text)")
        }

        /// Nothing else is needed, in either role.
        @Test(.enabled(if: isMember)) func theGroupIsEnough() async throws {
            let links = try await Links.open()
            try await Traffic.cross(links, [1, 300, 5000], BytesCodec(), SequencedFraming())
            try await links.end()
            let rig = try await ChannelRig.connected
            let psm = try await rig.peripheral.publishL2CAPChannel(encryptionRequired: false)
            let (near, far) = try await rig.open(psm)
            for end in [near, far] { end.close() }
            let error = await #expect(throws: BluetoothError.self) { _ = try await rig.connection.readRSSI() }
            #expect(error?.code == .notSupported)
            #expect(error?.message.contains("CAP_NET_ADMIN") == true, "\(error?.message ?? "")")
            try await ChannelRig.end()
        }
    }
#endif
