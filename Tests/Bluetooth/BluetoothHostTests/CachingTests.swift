import FerryTesting
import Foundation
import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host, .gatt)) struct DatabaseHashTests {
    /// The specification's own database (Core Specification 5.4, Vol 3, Part G, Appendix B), and the message that its hash is
    /// made of. FerryHCI's tests have the hash.
    @Test func inputIsTheSpecificationsExample() {
        func attribute(_ handle: UInt16, _ type: UInt16, _ value: String = "") -> Attribute {
            Attribute(handle: handle, type: .init(short: type), content: .fixed(hex(value)), access: .read)
        }
        let attributes = [
            attribute(0x01, 0x2800, "0018"), attribute(0x02, 0x2803, "0a0300002a"), attribute(0x03, 0x2A00, "41"),
            attribute(0x04, 0x2803, "020500012a"), attribute(0x05, 0x2A01, "0000"), attribute(0x06, 0x2800, "0118"),
            attribute(0x07, 0x2803, "200800052a"), attribute(0x08, 0x2A05), attribute(0x09, 0x2902, "0000"),
            attribute(0x0A, 0x2803, "0a0b00292b"), attribute(0x0B, 0x2B29, "00"),
            attribute(0x0C, 0x2803, "020d002a2b"), attribute(0x0D, 0x2B2A), attribute(0x0E, 0x2800, "0818"),
            attribute(0x0F, 0x2802, "140016000f18"), attribute(0x10, 0x2803, "a21100182a"), attribute(0x11, 0x2A18),
            attribute(0x12, 0x2902, "0200"), attribute(0x13, 0x2900, "0000"), attribute(0x14, 0x2801, "0f18"),
            attribute(0x15, 0x2803, "021600192a"), attribute(0x16, 0x2A19, "64"),
        ]
        #expect(
            AttributeDatabase.hashInput(attributes)
                == hex(
                    "010000280018020003280a0300002a04000328020500012a06000028011807000328200800052a090002290a0003280a0b0029"
                        + "2b0c000328020d002a2b0e00002808180f000228140016000f1810000328a2110018"
                        + "2a12000229130000290000140001280f1815000328021600192a"))
    }

    @Test func theHashChangesWithTheServices() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        guard case .success(.value(let before)) = try pair.ask(.readByType(1...0xFFFF, .databaseHash)) else {
            Issue.record("no hash")
            return
        }
        #expect(before.count == 16)
        #expect(try pair.ask(.readByType(1...0xFFFF, .databaseHash)) == .success(.value(before)))
        pair.host(0) { $0.removeService(handles.service, at: $1) }
        pair.settle()
        guard case .success(.value(let after)) = try pair.ask(.readByType(1...0xFFFF, .databaseHash)) else {
            Issue.record("no hash after a change")
            return
        }
        #expect(after != before)
    }

    @Test func withoutCryptographyThereIsNone() throws {
        var pair = HostPair(hasCryptography: false)
        _ = try pair.connect()
        #expect(
            try pair.ask(.readByType(1...0xFFFF, .databaseHash)) == .failure(.refused(.attributeNotFound)))
    }
}

@Suite(.tags(.host, .gatt)) struct RobustCachingTests {
    /// Where the Generic Attribute service's values are.
    private func values(_ pair: inout HostPair) throws -> [BluetoothHost.UUID: DiscoveredCharacteristic] {
        guard case .success(.services(let services)) = try pair.ask(.services(.genericAttribute)),
            case .success(.characteristics(let found)) = try pair.ask(.characteristics(in: services[0].handles))
        else { throw HostPair.Missing(what: "the Generic Attribute service") }
        return Dictionary(uniqueKeysWithValues: found.map { ($0.uuid, $0) })
    }

    private func changeServices(_ pair: inout HostPair) {
        #expect(
            pair.host(0) {
                $0.addService(ServiceSpecification(.init(short: 0x1815), characteristics: []), at: $1) != nil
            })
        pair.settle()
    }

    private func requests(_ pair: borrowing HostPair, _ opcode: UInt8) -> Int {
        pair.controllers.frames[1].filter { $0.count > 4 && $0[2] == 4 && $0[4] == opcode }.count
    }

    @Test func featuresOnlyRise() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let features = try #require(try values(&pair)[.clientSupportedFeatures]).value
        #expect(try pair.ask(.read(features)) == .success(.value([0x05])))
        #expect(try pair.ask(.write(features, [0x07])) == .success(.done))
        #expect(try pair.ask(.write(features, [0x05])) == .failure(.refused(.valueNotAllowed)))
        #expect(try pair.ask(.write(features, [])) == .failure(.refused(.invalidAttributeValueLength)))
        #expect(try pair.ask(.read(features)) == .success(.value([0x07])))
    }

    @Test func aClientThatDoesNotKnowIsToldOnce() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let changed = try #require(try values(&pair)[.serviceChanged])
        let secret = handles.characteristics[1] - 1  // the declaration: no encryption, no application
        #expect(try pair.ask(.configure(value: changed.value, end: changed.end, bits: 0)) == .success(.done))
        #expect(
            try pair.ask(.configure(value: handles.characteristics[0], end: handles.end, bits: 1)) == .success(.done))
        changeServices(&pair)
        // Neither commands nor values pass until it knows.
        let id = try pair.connection(1)
        #expect(
            pair.host(1) { host, _ in
                host.writeCommand(([1] as [UInt8]).span.bytes, to: handles.characteristics[0], of: id)
            } == true)
        #expect(pair.host(0) { $0.updateValue(([2] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        pair.settle()
        #expect(pair.received == [[], []])
        #expect(try pair.ask(.read(secret)) == .failure(.refused(.databaseOutOfSync)))
        #expect(pair.log[1].contains { if case .servicesChanged(id, 1...0xFFFF) = $0 { true } else { false } })
        guard case .success(.value) = try pair.ask(.read(secret)) else {
            Issue.record("told more than once")
            return
        }
        #expect(
            pair.host(1) { host, _ in
                host.writeCommand(([3] as [UInt8]).span.bytes, to: handles.characteristics[0], of: id)
            } == true)
        #expect(pair.host(0) { $0.updateValue(([4] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        pair.settle()
        #expect(pair.received == [[[3]], [[4]]])
    }

    @Test func whoConfirmsServiceChangedKnows() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        changeServices(&pair)
        changeServices(&pair)
        guard case .success(.value) = try pair.ask(.read(handles.characteristics[1] - 1)) else {
            Issue.record("refused although it was told")
            return
        }
        #expect(pair.log[1].filter { if case .servicesChanged = $0 { true } else { false } }.count == 2)
    }

    /// Changes while an indication waits for its confirmation are told together after it.
    @Test func noChangeIsLost() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        for number in 0..<3 as Range<UInt16> {
            let specification = ServiceSpecification(.init(short: 0x1815 + number), characteristics: [])
            #expect(pair.host(0) { $0.addService(specification, at: $1) != nil })
        }
        pair.settle()
        var ranges: [ClosedRange<UInt16>] = []
        for case .servicesChanged(_, let range) in pair.log[1] { ranges.append(range) }
        #expect(ranges == [handles.end + 1...handles.end + 1, handles.end + 2...handles.end + 3])
    }

    // MARK: The client's side

    @Test func nothingIsFoundTwice() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let all = try pair.ask(.services(nil))
        let characteristics = try pair.ask(.characteristics(in: handles.service...handles.end))
        #expect(
            try pair.ask(.configure(value: handles.characteristics[0], end: handles.end, bits: 1)) == .success(.done))
        let discovery: [UInt8] = [0x04, 0x06, 0x08, 0x10]
        let before = discovery.map { requests(pair, $0) }
        for round in 1...2 {
            if round == 2 {
                try pair.reconnect()
                // The hash is read anew, and nothing else looked for.
                let since = zip(discovery.map { requests(pair, $0) }, before).map { $0 - $1 }
                #expect(since == [0, 0, 1, 0])
            }
            #expect(try pair.ask(.services(nil)) == all)
            guard case .success(.services(let one)) = try pair.ask(.services(HostPair.service)) else {
                Issue.record("not found")
                return
            }
            #expect(one.map(\.uuid) == [HostPair.service])
            #expect(try pair.ask(.characteristics(in: handles.service...handles.end)) == characteristics)
            #expect(
                try pair.ask(.configure(value: handles.characteristics[0], end: handles.end, bits: 1))
                    == .success(.done))
            let since = zip(discovery.map { requests(pair, $0) }, before).map { $0 - $1 }
            #expect(since == [0, 0, round - 1, 0])
        }
    }

    @Test func whatChangedIsFoundAnew() throws {
        var pair = HostPair()
        _ = try pair.connect()
        guard case .success(.services(let before)) = try pair.ask(.services(nil)) else { return }
        changeServices(&pair)
        guard case .success(.services(let after)) = try pair.ask(.services(nil)) else { return }
        #expect(after.count == before.count + 1)
        // While nobody is connected too.
        try pair.disconnect()
        changeServices(&pair)
        try pair.reconnect()
        guard case .success(.services(let later)) = try pair.ask(.services(nil)) else { return }
        #expect(later.count == before.count + 2)
    }

    @Test func theCacheIsBounded() {
        var cache = DiscoveryCache()
        let many = ClientResult.descriptors(
            (1...600).map { DiscoveredDescriptor(handle: UInt16($0), uuid: .clientConfiguration) })
        for number in 0..<100 as Range<UInt64> {
            let peer = Address(number, .public)
            cache.use(peer, hash: [1], isProven: false)
            cache.keep(many, for: .descriptors(1...600), of: peer)
            cache.keep(many, for: .descriptors(2...600), of: peer)
        }
        #expect(cache.entries.count == DiscoveryCache.peerLimit)
        #expect(cache.entries.allSatisfy { $0.results.count == 1 })
        #expect(cache.entries.first?.address == Address(100 - UInt64(DiscoveryCache.peerLimit), .public))
        let last = Address(99, .public)
        #expect(cache.answer(.descriptors(1...600), of: last) == many)
        cache.use(last, hash: [2], isProven: false)
        #expect(cache.answer(.descriptors(1...600), of: last) == nil)
    }

    /// What is known of bonded peers outlives the host, and what is known of others does not.
    @Test func knowledgeIsStored() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        _ = try pair.ask(.services(nil))
        _ = try pair.ask(.characteristics(in: handles.service...handles.end))
        #expect(pair.host(1) { host, _ in host.knownPeers } == KnownPeers())
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        // What was found before the link was encrypted anybody may have said.
        #expect(pair.host(1) { host, _ in host.knownPeers.servers.allSatisfy { $0.results[.services(nil)] == nil } })
        _ = try pair.ask(.services(nil))
        try pair.disconnect()
        let known = (0...1).map { side in pair.host(side) { host, _ in host.knownPeers } }
        #expect(known[1].servers.count == 1)
        #expect(known[0].clients.map(\.wantsServiceChanged) == [true])
        for side in 0...1 {
            let stored = try JSONDecoder().decode(KnownPeers.self, from: JSONEncoder().encode(known[side]))
            #expect(stored == known[side])
            pair.host(side) { host, _ in
                host.setKnownPeers(KnownPeers())
                host.setKnownPeers(stored)
                #expect(host.knownPeers == stored)
            }
        }
        let before = requests(pair, 0x10)
        try pair.reconnect()
        _ = try pair.ask(.services(nil))
        #expect(requests(pair, 0x10) == before)
        pair.host(0) { host, _ in
            host.setBonds([])
            #expect(host.knownPeers == KnownPeers())
        }
    }

    /// A bonded client that comes back to other services is told, and refused until it knows.
    @Test func aBondedClientIsToldOfWhatItMissed() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.secure(id, at: $1) })
        pair.settle()
        try pair.disconnect()
        changeServices(&pair)
        try pair.reconnect()
        #expect(pair.log[1].contains { if case .servicesChanged(_, 1...0xFFFF) = $0 { true } else { false } })
        guard case .success(.value) = try pair.ask(.read(handles.characteristics[1] - 1)) else {
            Issue.record("refused although it was told")
            return
        }
    }
}

@Suite(.tags(.host, .gatt)) struct MultipleValueTests {
    private func connect(_ pair: inout HostPair) throws -> UInt16 {
        let handles = try pair.connect()
        #expect(
            try pair.ask(.configure(value: handles.characteristics[0], end: handles.end, bits: 1)) == .success(.done))
        return handles.characteristics[0]
    }

    private func notifications(_ pair: borrowing HostPair) -> [[UInt8]] {
        pair.controllers.frames[0].filter { $0[2] == 4 && ($0[4] == 0x1B || $0[4] == 0x23) }.map { Array($0[4...]) }
    }

    @Test func smallValuesShareAPDU() throws {
        var pair = HostPair()
        let handle = try connect(&pair)
        for value in [[1], [2, 3], []] as [[UInt8]] {
            #expect(pair.host(0) { $0.updateValue(value.span.bytes, of: handle, at: $1) })
        }
        pair.settle()
        let low = UInt8(handle)
        // Handle, length and value, again and again (Vol 3, Part F, 3.4.7.4).
        #expect(notifications(pair) == [[0x23, low, 0, 1, 0, 1, low, 0, 2, 0, 2, 3, low, 0, 0, 0]])
        #expect(pair.received[1] == [[1], [2, 3], []])
    }

    @Test(arguments: [23, 64, 247, 517], [1, 8, 20])
    func orderIsKeptWhateverFits(mtu: Int, count: Int) throws {
        var pair = HostPair(mtus: (mtu, mtu))
        let handle = try connect(&pair)
        var random = SplitMix64(seed: UInt64(mtu * 1000 + count))
        var sent: [[UInt8]] = []
        for number in 0..<200 {
            let size = number % 7 == 0 ? mtu - 3 : Int.random(in: 0...count, using: &random)
            let value = [UInt8](repeating: UInt8(number), count: min(size, 512))
            while !pair.host(0, { $0.updateValue(value.span.bytes, of: handle, at: $1) }) { pair.settle() }
            sent.append(value)
            if Bool.random(using: &random) { pair.settle() }
        }
        pair.settle()
        #expect(pair.received[1] == sent)
        #expect(notifications(pair).allSatisfy { $0.count <= mtu })
        #expect(notifications(pair).count < sent.count)
        #expect(pair.controllers.faults.isEmpty)
    }

    /// What has begun to leave takes nothing more, and an indication or an answer between two values keeps its place.
    @Test func nothingJoinsWhatHasBegunToLeave() throws {
        var pair = HostPair()
        let handle = try connect(&pair)
        pair.controllers.sides[0].options.completesAtOnce = false
        let long = [UInt8](repeating: 1, count: 200)
        #expect(pair.host(0) { $0.updateValue(long.span.bytes, of: handle, at: $1) })
        pair.settle()
        for byte in [2, 3] as [UInt8] {
            #expect(pair.host(0) { $0.updateValue([byte].span.bytes, of: handle, at: $1) })
        }
        for _ in 0..<20 {
            pair.controllers.release(9, on: 0)
            pair.settle()
        }
        #expect(pair.received[1] == [long, [2], [3]])
        #expect(notifications(pair).map { $0[0] } == [0x1B, 0x23])
    }

    @Test func whoHasNotSaidSoGetsSingleOnes() throws {
        var pair = HostPair()
        let handle = try connect(&pair)
        pair.host(0) { host, _ in host.connections[0].clientFeatures = [] }
        for byte in [1, 2] as [UInt8] {
            #expect(pair.host(0) { $0.updateValue([byte].span.bytes, of: handle, at: $1) })
        }
        pair.settle()
        #expect(notifications(pair).map { $0[0] } == [0x1B, 0x1B])
        #expect(pair.received[1] == [[1], [2]])
    }
}
