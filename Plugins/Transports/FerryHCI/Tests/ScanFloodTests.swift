#if HCI
    @testable import BluetoothHost
    import FerryBluetooth
    @testable import FerryHCI
    import Synchronization
    import TestSupport
    import Testing

    /// Advertisers that never come to an end.
    @Suite(.tags(.adapter, .advertising, .hostility)) struct ScanFloodTests {
        private final class Listener: CentralRoleEvents, Sendable {
            let last = Mutex<Discovery?>(nil)
            let count = Mutex(0)
            func centralDidDiscover(_ discovery: Discovery) {
                last.withLock { $0 = discovery }
                count.withLock { $0 += 1 }
            }
        }

        private let engine = HCIEngine(
            name: "test", HostConfiguration(address: .staticRandom(1)), HCIConfiguration())
        private let listener = Listener()

        private let role: UInt64

        init() throws {
            role = engine.openCentral(listener)
            try scan(ScanRequest())
        }

        private func scan(_ request: ScanRequest) throws {
            let scan = try Scan<Address>(request)
            engine.state.withLock { [role] in $0.centrals[role]?.scan = scan }
        }

        private func hear(_ address: UInt64, _ data: [UInt8], isScanResponse: Bool = false) {
            engine.didHear(
                AdvertisingReport(
                    address: .staticRandom(address), isResolved: false, isConnectable: true,
                    isScanResponse: isScanResponse, rssi: -60, data: data, isPartial: false))
        }

        @Test func newAddressesWithoutEndAreForgottenAgain() throws {
            let data: [UInt8] = [3, 0x03, 0x0F, 0x18]
            hear(1, data)
            hear(1, [], isScanResponse: true)
            let connecting = try #require(listener.last.withLock { $0 }).peripheral
            final class Unheard: PeripheralConnectionEvents {
                func peripheralDidDisconnect(_ reason: BluetoothError) {}
            }
            engine.state.withLock { state in
                state.attempts.add(Waiter(), of: 0, for: .staticRandom(1), connecting, Unheard())
            }
            for address in UInt64(2)..<20_000 {
                hear(address, data)
                hear(address, [], isScanResponse: true)
            }
            #expect(listener.count.withLock { $0 } == 19_999)
            engine.state.withLock { state in
                #expect(state.peers.count == state.peers.limit)
                #expect(state.heard.count <= state.peers.limit)
                #expect((state.centrals[role]?.scan?.count).map { $0 <= state.peers.limit } == true)
                #expect(state.peers.key(of: connecting) == .staticRandom(1))
            }
        }

        /// One advertiser's data are those it sent last, however much it has sent before.
        @Test func newDataTakesThePlaceOfOld() throws {
            try scan(ScanRequest(allowsDuplicates: true))
            hear(1, [5, 0x09] + Array("card".utf8), isScanResponse: true)
            for value in 0..<UInt16(5_000) {
                let (low, high) = (UInt8(value & 0xFF), UInt8(value >> 8))
                hear(1, [3, 0x03, low, high, 4, 0x16, low, high, 7, 5, 0xFF, 0x4C, 0, low, high])
            }
            let last = try #require(listener.last.withLock { $0 }).advertisement
            #expect(last.localName == "card")
            #expect(last.services == [BluetoothUUID(0x1387 as UInt16)])
            #expect(last.serviceData.count == 1)
            #expect(last.manufacturerData == [0x4C, 0, 0x87, 0x13])
        }
    }
#endif
