#if HCI
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import TestSupport
    import Testing

    /// The adapter seam's contract, over two controllers. ATT_MTU is 185, for the kit takes 400 bytes to be a long value.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct KitTests {
        @Test(arguments: AdapterConformance.Requirement.allCases, RadioKind.here([.bumble(acl: 251)]))
        func keepsTheContract(_ requirement: AdapterConformance.Requirement, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            var configuration = HCIConfiguration()
            configuration.maximumMTU = 185
            let peripheral = try await HCIAdapter.open(radio.channels[0], configuration)
            let central = try await HCIAdapter.open(radio.channels[1])
            let kit = AdapterConformance(
                peripheral: peripheral, central: central, deviations: .cannotPause, time: .patient)
            try await radio.explaining { try await kit.check(requirement) }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        /// GATT links between the two, as a transport. There is one central, so one peer.
        @Test(arguments: TransportConformance.Requirement.allCases, RadioKind.here([.bumble(acl: 251)]))
        func transports(_ requirement: TransportConformance.Requirement, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let layout = GATTConfiguration(
                service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
            let server = GATTTransport(adapter: try await HCIAdapter.open(radio.channels[0]), configuration: layout)
            let client = GATTTransport(adapter: try await HCIAdapter.open(radio.channels[1]), configuration: layout)
            let kit = TransportConformance(time: .patient, deviations: .onePeer) {
                .init(listening: server) { client }
            }
            try await radio.explaining { try await kit.check(requirement) }
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }
    }
#endif
