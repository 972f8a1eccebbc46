import Ferry
import FerryBluetooth
import TestSupport
import Testing

private func peer(_ number: UInt128) -> PeerID { PeerID(rawValue: number) }

private final class Owner: PeripheralConnectionEvents {
    func peripheralDidDisconnect(_ reason: BluetoothError) {}
}

private final class Receiver: LinkReceiver {
    func linkIsReady() {}
    func linkDidReceive(_ chunk: RawSpan) {}
    func linkDidClose(_ reason: FerryError) {}
}

@Suite("What adapters keep books about", .tags(.bluetooth, .adapter)) struct AdapterBookTests {
    // MARK: Peers

    @Test func aPeerKeepsItsName() {
        var table = PeerTable<String>()
        let first = table.name("a", peer(1)).name
        #expect(first == peer(1))
        #expect(table.name("a", peer(2)).name == first)
        #expect(table.name(of: "a") == first && table.key(of: first) == "a")
        #expect(table.name(of: "b") == nil && table.key(of: peer(2)) == nil)
    }

    @Test func aFullTableForgetsWhoWasNamedFirstOfThoseThatNobodyHolds() {
        var table = PeerTable<Int>(limit: 3)
        for key in 1...3 { #expect(table.name(key, peer(UInt128(key))).forgotten.isEmpty) }
        #expect(table.name(4, peer(4), held: [1]).forgotten == [2])
        #expect(table.key(of: peer(2)) == nil && table.name(of: 2) == nil)
        #expect(table.key(of: peer(1)) == 1)
        // Those that are held come on top, and go when they are not any more.
        #expect(table.name(5, peer(5), held: [1, 3, 4]).forgotten.isEmpty)
        #expect(table.count == 4)
        #expect(table.name(6, peer(6)).forgotten.count == 2)
        #expect(table.count == 3)
        // It is met again under another name.
        #expect(table.name(2, peer(7)).name == peer(7))
    }

    @Test func aPeerCanBeKnownByAnotherKeyAsWell() {
        var table = PeerTable<String>(limit: 2)
        let name = table.name("private", peer(1)).name
        table.add("lasting", for: "private")
        #expect(table.name(of: "lasting") == name && table.key(of: name) == "lasting")
        // The one key is forgotten, and the peer goes on by the other.
        #expect(table.name("c", peer(2)).forgotten == ["private"])
        #expect(table.key(of: name) == "lasting")
        table.add("d", for: "nobody")
        table.add("c", for: "lasting")
        #expect(table.name(of: "d") == nil && table.name(of: "c") == peer(2))
    }

    // MARK: Scans

    private static let card = AdvertisementData(
        localName: "card", services: [.battery], overflowServices: [.heartRate])

    @Test(arguments: [
        (ScanRequest(), -60, true), (ScanRequest(services: [.battery]), -60, true),
        (ScanRequest(services: [.heartRate]), nil, true), (ScanRequest(services: [.deviceInformation]), -60, false),
        (ScanRequest(name: "card"), nil, true), (ScanRequest(name: "car"), nil, false),
        (ScanRequest(rssi: -70 ... -50), -70, true), (ScanRequest(rssi: -70 ... -50), -71, false),
        (ScanRequest(rssi: -70 ... -50), nil, false), (ScanRequest(rssi: -127...20), nil, true),
    ]) func aScanReportsWhatMatches(_ request: ScanRequest, _ rssi: Int?, _ isExpected: Bool) throws {
        var scan = try Scan<Int>(request)
        #expect(scan.report(Self.card, rssi: rssi, from: 1) == isExpected)
        #expect(scan.count == (isExpected ? 1 : 0))
    }

    @Test(arguments: [false, true]) func aScanReportsOnceAndWhenSomethingIsNew(_ allowsDuplicates: Bool) throws {
        var scan = try Scan<Int>(ScanRequest(allowsDuplicates: allowsDuplicates))
        #expect(scan.report(Self.card, rssi: -60, from: 1) == true)
        #expect(scan.report(Self.card, rssi: -50, from: 1) == allowsDuplicates)
        #expect(scan.report(Self.card, rssi: -50, from: 2) == true)
        var other = Self.card
        other.localName = "another"
        #expect(scan.report(other, rssi: -50, from: 1) == true)
        scan.forget(2)
        #expect(scan.count == 1)
        #expect(scan.report(Self.card, rssi: -50, from: 2) == true)
    }

    @Test(arguments: [21...30, -200 ... -128]) func aWindowThatHoldsNothingIsRefused(_ window: ClosedRange<Int>) {
        let error = #expect(throws: BluetoothError.self) { try Scan<Int>(ScanRequest(rssi: window)) }
        #expect(error?.code == .invalidArgument)
    }

    // MARK: Roles

    @Test func aClosedRoleIsRefused() throws {
        var roles = OpenRoles<String>()
        roles.open(1, "one")
        roles.open(2, "two")
        roles[1] = "uno"
        roles.update { $0 += "!" }
        #expect(roles.all == ["uno!", "two!"])
        #expect(roles.contains(2) { $0 == "two!" } && !roles.contains(2) { $0 == "uno!" })
        #expect(roles.close(1) == "uno!")
        #expect(roles.close(1) == nil)
        roles[1] = "again"
        #expect(roles[1] == nil && !roles.contains(1) { _ in true })
        let error = #expect(throws: BluetoothError.self) { try roles.required(1) }
        #expect(error?.code == .roleClosed)
        #expect(try roles.required(2) == "two!")
        #expect(roles.close(2) != nil && roles.isEmpty)
    }

    // MARK: Attempts

    @Test func theLastToLoseInterestCallsAnAttemptOff() {
        var attempts = ConnectionAttempts<String, Int>()
        let (first, second) = (Waiter<Int>(), Waiter<Int>())
        attempts.add(first, of: 1, for: "a", peer(1), Owner())
        attempts.add(second, of: 2, for: "a", peer(1), Owner())
        #expect(attempts.remove(first, for: "a") == false)
        #expect(attempts.remove(first, for: "b") == false)
        #expect(attempts["a"].map(\.role) == [2])
        #expect(attempts.remove(second, for: "a") == true)
        #expect(!attempts.contains("a") && attempts.keys.isEmpty)
        // What it waited for is over, so there is nothing to call off.
        #expect(attempts.remove(second, for: "a") == false)
    }

    @Test func anOutcomeIsForAllWhoWait() {
        var attempts = ConnectionAttempts<String, Int>()
        for role in 1...3 as ClosedRange<UInt64> {
            attempts.add(Waiter(), of: role, for: role == 3 ? "b" : "a", peer(1), Owner())
        }
        #expect(attempts.take("a").map(\.role) == [1, 2])
        #expect(attempts.take("a").isEmpty)
        #expect(attempts.keys == ["b"])
    }

    @Test func aClosedRoleGivesUpInTheOrderOfItsCalls() {
        var attempts = ConnectionAttempts<String, Int>()
        for (number, (role, key)) in [(1 as UInt64, "c"), (2, "a"), (1, "a"), (1, "b")].enumerated() {
            attempts.add(Waiter(), of: role, for: key, peer(UInt128(number)), Owner())
        }
        let over = attempts.giveUp { $0.role == 1 }
        #expect(over.waits.map(\.peripheral) == [peer(0), peer(2), peer(3)])
        #expect(over.abandoned == ["c", "b"])
        #expect(attempts.keys == ["a"] && attempts["a"].map(\.role) == [2])
    }

    // MARK: Connections

    @Test func aConnectionEndsOnce() {
        var life = ConnectionLife.open(Owner())
        #expect(life.reason == nil && life.events != nil)
        #expect(throws: Never.self) { try life.requireOpen() }
        #expect(life.beginEnding(.endedHere) == true)
        #expect(life.beginEnding(.notConnected) == false)
        #expect(life.reason?.code == .disconnectedLocally && life.events != nil && !life.isOver)
        let error = #expect(throws: BluetoothError.self) { try life.requireOpen() }
        #expect(error?.code == .disconnectedLocally)
        // The first reason counts, whatever comes of the end.
        #expect(life.end(BluetoothError(.connectionTimeout, ""))?.reason.code == .disconnectedLocally)
        #expect(life.reason?.code == .disconnectedLocally && life.isOver && life.events == nil)
        #expect(life.end(.notConnected) == nil)
        #expect(life.beginEnding(.notConnected) == false)
        #expect(life.reason?.code == .disconnectedLocally)
    }

    @Test func anEndThatNobodyHasBegunHasItsOwnReason() {
        var life = ConnectionLife.open(Owner())
        #expect(life.end(BluetoothError(.connectionTimeout, ""))?.reason.code == .connectionTimeout)
        #expect(life.beginEnding(.endedHere) == false)
        #expect(life.reason?.code == .connectionTimeout)
    }

    @Test(arguments: [false, true]) func anOwnerThatHasGoneIsNotTold(_ beganBefore: Bool) {
        var life = ConnectionLife.open(Owner())
        if beganBefore { life.beginEnding(.notConnected) }
        #expect(life.beginEnding(.endedHere, isSilent: true) == !beganBefore)
        #expect(life.events == nil)
        #expect(life.reason?.code == (beganBefore ? .notConnected : .disconnectedLocally))
        #expect(life.end(.endedHere) == nil && life.isOver)
    }

    // MARK: Requests

    @Test func aRequestIsAnsweredOnceByWhoWasAsked() {
        var requests = HeldRequests<String>()
        for number in 1...4 {
            requests.hold(
                RequestID(rawValue: UInt64(number)), for: number < 4 ? 1 : 2, on: number < 3 ? 10 : 20, "\(number)")
        }
        #expect(requests.answer(RequestID(rawValue: 4), by: 1) == nil)
        #expect(requests.answer(RequestID(rawValue: 4), by: 2) == "4")
        #expect(requests.answer(RequestID(rawValue: 4), by: 2) == nil)
        requests.expire(RequestID(rawValue: 2))
        #expect(requests.roleDidClose(1) == ["1", "3"])
        #expect(requests.roleDidClose(1).isEmpty && requests.roleDidClose(2).isEmpty)
    }

    @Test func nobodyIsAnsweredOnAConnectionThatHasEnded() {
        var requests = HeldRequests<Int>()
        for number in 0..<6 {
            requests.hold(RequestID(rawValue: UInt64(number)), for: 1, on: UInt64(number % 2), number)
        }
        requests.connectionDidEnd(1)
        #expect(requests.answer(RequestID(rawValue: 1), by: 1) == nil)
        #expect(requests.roleDidClose(1) == [0, 2, 4])
    }

    // MARK: Channels

    @Test func aChannelTellsItsEndOnce() throws {
        for isActiveFirst in [true, false] {
            var life = ChannelLife.open(nil)
            let receiver = Receiver()
            if isActiveFirst { #expect(life.activate(receiver) == nil) }
            #expect((life.receiver == nil) == !isActiveFirst)
            #expect((life.end(.channelClosedByPeer)?.receiver === receiver) == isActiveFirst)
            #expect(life.end(.channelClosedHere) == nil)
            #expect(life.activate(receiver)?.code == (isActiveFirst ? nil : .disconnected))
            #expect(life.activate(Receiver()) == nil)
            #expect(life.end?.code == .disconnected && !life.close())
        }
    }

    @Test func aSecondReceiverIsIgnored() {
        var life = ChannelLife.open(nil)
        let first = Receiver()
        #expect(life.activate(first) == nil && life.activate(Receiver()) == nil)
        #expect(life.receiver === first)
        #expect(life.close() && !life.close() && life.isClosing)
        #expect(life.activate(Receiver()) == nil && life.receiver === first)
    }

    @Test(arguments: [FerryError.channelClosedByPeer, .channelClosedHere])
    func thatThisSideHasClosedGoesBeforeAnyOtherReason(_ reason: FerryError) {
        var life = ChannelLife.open(Receiver())
        #expect(life.close() == true)
        #expect(life.end(reason)?.reason.code == .closed)
        // The same when it had ended before anybody listened.
        life = .open(nil)
        #expect(life.end(.channelClosedByPeer) == nil)
        #expect(life.close() == false)
        #expect(life.activate(Receiver())?.code == .closed)
    }

    @Test func aChannelRefusesWhatItCannotSend() {
        func code(_ life: ChannelLife, _ count: Int) -> FerryError.Code? {
            do throws(FerryError) { try life.checkSending(count, maximum: 23) } catch { return error.code }
            return nil
        }
        let (open, closing) = (ChannelLife.open(nil), ChannelLife.closing(nil))
        let ended = ChannelLife.ended(.channelClosedByPeer)
        #expect([0, 1, 23, 24].map { code(open, $0) } == [.emptyChunk, nil, nil, .chunkTooLarge])
        #expect([0, 1, 24].map { code(closing, $0) } == [.closed, .closed, .closed])
        #expect([0, 1, 24].map { code(ended, $0) } == [.disconnected, .disconnected, .disconnected])
    }

    /// Whether a closed channel, in which 20 bytes wait, waits on: by seconds since then and the bytes that are left.
    @Test(
        arguments: [
            ("nothing waits", [(0, 0, false)]),
            ("nothing leaves", [(0, 20, true), (4.9, 20, true), (5, 20, false)]),
            ("all leaves", [(0, 20, true), (4, 5, true), (8, 0, false)]),
            ("each byte has its time", [(4.9, 19, true), (9.8, 18, true), (14.8, 18, false)]),
            ("more bytes are no progress", [(0, 20, true), (4, 21, true), (5, 21, false)]),
            ("a minute is the limit", (1...15).map { (Double(4 * $0), 20 - $0, $0 < 15) }),
        ] as [(String, [(Double, Int, Bool)])])
    func aClosedChannelWaitsForWhatLeaves(_ name: String, looks: [(Double, Int, Bool)]) {
        var drain = ChannelDrain(20, at: .zero)
        for (seconds, waiting, hasTime) in looks {
            let isGranted = drain.hasTime(for: waiting, at: .zero + .seconds(seconds))
            #expect(isGranted == hasTime, "\(waiting) bytes after \(seconds) s")
        }
    }

    // MARK: Values and definitions

    @Test func wrongWritesAreRefused() {
        func code(_ type: WriteType, _ count: Int, _ properties: CharacteristicProperties) -> BluetoothError.Code? {
            do throws(BluetoothError) {
                try BluetoothError.checkWrite(count, type, maximum: 20, to: AttributeID(rawValue: 1), properties)
            } catch { return error.code }
            return nil
        }
        #expect(code(.withResponse, 20, .write) == nil)
        #expect(code(.withResponse, 21, .write) == .valueTooLong)
        #expect(code(.withResponse, 1, .writeWithoutResponse) == .notSupported)
        #expect(code(.withoutResponse, 20, [.write, .writeWithoutResponse]) == nil)
        #expect(code(.withoutResponse, 21, .write) == .notSupported)
    }

    @Test func subscriptionsFollowFromProperties() {
        let plain: CharacteristicProperties = [.read, .notify]
        let trusted: CharacteristicProperties = [.indicateEncryptionRequired]
        #expect(plain.offers(.notify) && !plain.offers(.indicate) && plain.offersSubscription)
        #expect(trusted.offers(.indicate) && !trusted.offers(.notify) && trusted.onAir == .indicate)
        #expect(trusted.requiresEncryption(for: .indicate) && !plain.requiresEncryption(for: .notify))
        #expect(!CharacteristicProperties.write.offersSubscription)
    }

    @Test func definitionsThatNobodyCanPublishAreRefused() {
        func refuses(_ characteristic: CharacteristicDefinition, including: [AttributeID] = []) -> String? {
            let service = ServiceDefinition(.battery, includedServices: including, characteristics: [characteristic])
            do throws(BluetoothError) {
                try service.check { $0.rawValue == 1 }
            } catch { return error.code == .invalidArgument ? error.message : "\(error.code)" }
            return nil
        }
        func fixed(
            _ count: Int, _ permissions: AttributePermissions = .readable,
            _ properties: CharacteristicProperties = .read,
            _ descriptors: [DescriptorDefinition] = []
        ) -> CharacteristicDefinition {
            CharacteristicDefinition(
                .heartRate, properties: properties, permissions: permissions,
                value: [UInt8](repeating: 0, count: count),
                descriptors: descriptors)
        }
        func described(_ uuid: BluetoothUUID, _ count: Int) -> [DescriptorDefinition] {
            [DescriptorDefinition(uuid, value: [UInt8](repeating: 0, count: count))]
        }
        #expect(refuses(fixed(512, .readable, .read, described(.characteristicUserDescription, 512))) == nil)
        #expect(refuses(fixed(513))?.contains("513 bytes") == true)
        #expect(refuses(fixed(1, [.readable, .writeable]))?.contains("can only be read") == true)
        #expect(refuses(fixed(1, .readable, [.read, .notify]))?.contains("can only be read") == true)
        let long = described(.characteristicUserDescription, 513)
        #expect(refuses(fixed(1, .readable, .read, long))?.contains("513 bytes") == true)
        for uuid in [BluetoothUUID.clientCharacteristicConfiguration, .characteristicExtendedProperties] {
            #expect(refuses(fixed(1, .readable, .read, described(uuid, 2)))?.contains("adds itself") == true)
        }
        #expect(refuses(fixed(1), including: [AttributeID(rawValue: 1)]) == nil)
        #expect(refuses(fixed(1), including: [AttributeID(rawValue: 2)])?.contains("publish it first") == true)
    }
}
