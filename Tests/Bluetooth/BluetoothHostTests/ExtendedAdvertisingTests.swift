import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Advertisements of more than 31 bytes, beacons, and the coded physical layer.
@Suite(.tags(.host)) struct ExtendedAdvertisingTests {
    private static let own = Address.staticRandom(0xF1F1_F1F1_F1F1)

    /// Manufacturer's data in one structure, with the flags before it.
    private static func payload(_ count: Int, isConnectable: Bool = true) -> AdvertisingPayload {
        let data = (0..<count - 7).map { UInt8(truncatingIfNeeded: $0) }
        var payload = AdvertisingPayload(data: [2, 1, 6, UInt8(count - 4), 0xFF, 0xFF, 0xFF] + data)
        payload.isExtended = true
        payload.isConnectable = isConnectable
        return payload
    }

    private func reports(_ pair: borrowing HostPair) -> [AdvertisingReport] {
        pair.log[1].compactMap { if case .advertisementReceived(let report) = $0 { report } else { nil } }
    }

    @Test(arguments: [32, 120, 245], [true, false])
    func longDataAreHeardWhole(count: Int, isConnectable: Bool) throws {
        var pair = HostPair(.init(isExtended: true))
        pair.start()
        pair.host(1) { $0.scan(true, at: $1) }
        let payload = Self.payload(count, isConnectable: isConnectable)
        #expect(pair.host(0) { $0.advertise(payload, at: $1) })
        pair.settle()
        let report = try #require(reports(pair).last)
        #expect(report.data == payload.data)
        #expect(report.isConnectable == isConnectable)
        #expect(pair.host(1) { $0.connect(to: Self.own, at: $1) })
        pair.settle()
        #expect(pair.peers(1).count == (isConnectable ? 1 : 0))
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
    }

    @Test func whatIsTooLongIsRefused() {
        var pair = HostPair(.init(isExtended: true))
        pair.start()
        #expect(!pair.host(0) { $0.advertise(Self.payload(246), at: $1) })
        var payload = Self.payload(40)
        payload.scanResponse = [2, 0x0A, 0]
        #expect(!pair.host(0) { $0.advertise(payload, at: $1) })
        payload.scanResponse = []
        payload.isExtended = false
        #expect(!pair.host(0) { $0.advertise(payload, at: $1) })
    }

    /// The application is told; what was on the air before is not any more.
    @Test func aControllerFromBeforeBluetooth5Refuses() {
        var pair = HostPair()
        pair.start()
        #expect(pair.host(0) { $0.advertise(AdvertisingPayload(data: [2, 1, 6]), at: $1) })
        pair.settle()
        #expect(pair.controllers.sides[0].isAdvertising)
        #expect(pair.host(0) { $0.advertise(Self.payload(40), at: $1) })
        pair.settle()
        #expect(
            pair.log[0].contains { if case .advertisingFailed(.unsupportedFeature) = $0 { true } else { false } })
        #expect(!pair.controllers.sides[0].isAdvertising)
    }

    /// The controller's set cannot hold data of the other kind: it is removed between.
    @Test func oneKindFollowsTheOther() {
        var pair = HostPair(.init(isExtended: true))
        pair.start()
        for isExtended in [true, false, true, true] {
            var payload =
                isExtended ? Self.payload(100) : AdvertisingPayload(data: [2, 1, 6], scanResponse: [2, 10, 0])
            payload.interval = isExtended ? 100...200 : 48...96
            #expect(pair.host(0) { $0.advertise(payload, at: $1) })
            pair.settle()
            #expect(pair.controllers.sides[0].isAdvertising)
            #expect(pair.controllers.sides[0].data == payload.data)
        }
        #expect(!pair.log[0].contains { if case .advertisingFailed = $0 { true } else { false } })
        #expect(pair.controllers.faults.isEmpty, "\(pair.controllers.faults)")
        #expect(pair.controllers.sides[0].commands.count { $0 == 0x203C } == 2)
    }

    /// Properties, intervals and layers, by the octet (Core Specification 5.4, Vol 4, Part E, 7.8.53).
    @Test func theParametersAreThoseOfTheSpecification() throws {
        for (isConnectable, properties) in [(true, 0x01), (false, 0x00)] as [(Bool, UInt8)] {
            var pair = HostPair(.init(isExtended: true))
            pair.start()
            var payload = Self.payload(40, isConnectable: isConnectable)
            payload.interval = 0x0140...0x4000
            #expect(pair.host(0) { $0.advertise(payload, at: $1) })
            pair.settle()
            let command = try #require(pair.controllers.sides[0].packets.last { $0[0] == 0x36 && $0[1] == 0x20 })
            #expect(
                Array(command[3...]) == [
                    0x00, properties, 0x00, 0x40, 0x01, 0x00, 0x00, 0x40, 0x00, 0x07, 0x01, 0x00, 0, 0, 0, 0, 0, 0,
                    0x00,
                    0x7F, 0x01, 0x00, 0x01, 0x00, 0x00,
                ])
            #expect(!pair.controllers.sides[0].commands.contains(0x2038))
        }
    }

    /// LE Set Extended Scan Parameters and LE Extended Create Connection with two layers (7.8.64 and 7.8.66); with one where
    /// the controller has no other, or nobody asked.
    @Test(arguments: [(true, true), (true, false), (false, true)])
    func theCodedLayerIsListenedToo(hasCodedPHY: Bool, isWanted: Bool) throws {
        var options = VirtualControllers.Options(isExtended: true)
        options.hasCodedPHY = hasCodedPHY
        var pair = HostPair(options) { _, configuration in configuration.usesCodedPHY = isWanted }
        pair.start()
        let isUsed = hasCodedPHY && isWanted
        pair.host(1) { $0.scan(true, at: $1) }
        #expect(pair.host(1) { $0.connect(to: Self.own, at: $1) })
        pair.settle()
        let packets = pair.controllers.sides[1].packets
        let scan = try #require(packets.last { $0[0] == 0x41 && $0[1] == 0x20 })
        let connect = try #require(packets.last { $0[0] == 0x43 && $0[1] == 0x20 })
        let one: [UInt8] = [0x01, 0x60, 0x00, 0x60, 0x00]
        let half: [UInt8] = [0x01, 0xC0, 0x00, 0x60, 0x00]
        #expect(Array(scan[3...]) == [0x01, 0x00, isUsed ? 0x05 : 0x01] + (isUsed ? half + half : one))
        let rest: [UInt8] = [12, 0, 24, 0, 0, 0, 0xF4, 0x01, 0, 0, 0, 0]
        let layers = isUsed ? half[1...] + rest + half[1...] + rest : one[1...] + rest
        #expect(Array(connect[3...]) == [0x00, 0x01, 0x01] + Self.own.bytes + [isUsed ? 0x05 : 0x01] + layers)
        #expect(pair.host(0) { $0.advertise(AdvertisingPayload(data: []), at: $1) })
        pair.settle()
        #expect(pair.peers(1).count == 1)
    }
}
