import FerryBluetooth
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CoreBluetooth

/// A central manager over an adapter that does what the test says: every order of events, on purpose.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct ScriptedCentralTests {
    private func connected(_ adapter: ScriptedAdapter, _ side: CentralSide) async throws
        -> (CBPeripheral, CBCharacteristic, ScriptedConnection)
    {
        let (peripheral, characteristic) = try await side.connect()
        return (peripheral, characteristic, try some(adapter.central.connections.current.last))
    }

    // MARK: Scanning

    @Test func discoveriesThatNobodyTakesAreBounded() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        try await side.journal.wait(for: "state poweredOn")
        side.checked.hold()
        side.manager.scanForPeripherals(withServices: nil)
        for _ in 0..<2_000 { adapter.central.discover() }
        side.checked.queue.resume()
        try await side.journal.wait(for: "discovered", 1_024)
        // Those that are delivered make room.
        adapter.central.discover()
        try await side.journal.wait(for: "discovered", 1_025)
        side.checked.queue.sync {}
        #expect(side.journal.count("discovered") == 1_025)
    }

    @Test func nothingIsDiscoveredOnceTheScanHasStopped() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        try await side.journal.wait(for: "state poweredOn")
        side.checked.hold()
        side.manager.scanForPeripherals(withServices: nil)
        for _ in 0..<10 { adapter.central.discover() }
        side.manager.stopScan()
        #expect(!side.manager.isScanning)
        side.checked.queue.resume()
        side.checked.queue.sync {}
        #expect(side.journal.count("discovered") == 0)
        #expect(adapter.journal.count("stop scan") == 1)
    }

    @Test func aScanThatFailsLeavesTheOneBefore() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        try await side.journal.wait(for: "state poweredOn")
        func failingScan() {
            adapter.central.failure.current = BluetoothError(.invalidArgument, "no")
            side.manager.scanForPeripherals(withServices: [testService])
        }
        #expect(MisuseLog.count("scanForPeripherals: no") { failingScan() } == 1)
        #expect(!side.manager.isScanning)
        side.manager.scanForPeripherals(withServices: nil)
        failingScan()
        #expect(side.manager.isScanning)
    }

    // MARK: Connecting

    @Test func whatIsCancelledWhileItConnectsIsLetGoOf() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        adapter.central.gate.hold()
        side.manager.connect(peripheral)
        try await adapter.journal.wait(for: "connect")
        #expect(peripheral.state == .connecting)
        side.manager.cancelPeripheralConnection(peripheral)
        #expect(peripheral.state == .disconnecting)
        adapter.central.gate.release()
        try await adapter.journal.wait(for: "disconnect")
        try some(adapter.central.connections.current.last?.events.current)
            .peripheralDidDisconnect(BluetoothError(.notConnected, "closed"))
        try await side.journal.wait(for: "disconnected ok")
        #expect(side.journal.count("connected") == 0)
        #expect(peripheral.state == .disconnected)
    }

    /// A connection that has ended before the adapter hands it over is reported with its end.
    @Test func anEndThatOvertakesItsConnectionIsReported() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        adapter.central.end.current = BluetoothError(.connectionFailed, "lost")
        side.manager.connect(peripheral)
        try await side.journal.wait(for: "disconnected CBError")
        #expect(side.journal.count("connected") == 1)
        #expect(peripheral.state == .disconnected)
    }

    @Test func connectingAgainWhileDisconnectingFollowsTheEnd() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, _, connection) = try await connected(adapter, side)
        side.manager.cancelPeripheralConnection(peripheral)
        side.manager.connect(peripheral)
        #expect(adapter.journal.count("connect") == 1)
        try some(connection.events.current).peripheralDidDisconnect(BluetoothError(.notConnected, "closed"))
        try await side.journal.wait(for: "disconnected ok")
        try await side.journal.wait(for: "connected", 2)
        #expect(adapter.journal.count("connect") == 2)
        // Once is once: no later end, of either kind, is followed by another connection.
        try some(adapter.central.connections.current.last?.events.current)
            .peripheralDidDisconnect(BluetoothError(.connectionFailed, "lost"))
        try await side.journal.wait(for: "disconnected CBError", 1)
        side.checked.queue.sync {}
        #expect(adapter.journal.count("connect") == 2)
        #expect(peripheral.state == .disconnected)
    }

    @Test func whoChangesItsMindTwiceStaysDisconnected() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, _, connection) = try await connected(adapter, side)
        side.manager.cancelPeripheralConnection(peripheral)
        side.manager.connect(peripheral)
        side.manager.cancelPeripheralConnection(peripheral)
        try some(connection.events.current).peripheralDidDisconnect(BluetoothError(.notConnected, "closed"))
        try await side.journal.wait(for: "disconnected ok")
        side.checked.queue.sync {}
        #expect(adapter.journal.count("connect") == 1)
        #expect(peripheral.state == .disconnected)
    }

    @Test(arguments: [true, false]) func onlyWhatIsToReconnectDoes(reconnects: Bool) async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        side.manager.connect(
            peripheral, options: [CBConnectPeripheralOptionEnableAutoReconnect: NSNumber(value: reconnects)])
        try await side.journal.wait(for: "connected")
        try some(adapter.central.connections.current.last?.events.current)
            .peripheralDidDisconnect(BluetoothError(.connectionFailed, "lost"))
        try await side.journal.wait(for: "disconnected")
        if reconnects {
            try await side.journal.wait(for: "connected", 2)
            // What is asked for is not undone.
            side.manager.cancelPeripheralConnection(peripheral)
            try some(adapter.central.connections.current.last?.events.current)
                .peripheralDidDisconnect(BluetoothError(.connectionFailed, "lost"))
            try await side.journal.wait(for: "disconnected", 2)
        }
        side.checked.queue.sync {}
        #expect(adapter.journal.count("connect") == (reconnects ? 2 : 1))
        #expect(side.journal.all.last(where: { $0.hasPrefix("disconnected") })?.hasSuffix("reconnecting") == false)
    }

    @Test func startDelaysHaveTheirLimits() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        for delay in [-0.001, 86_400.001, .nan] {
            side.manager.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: NSNumber(value: delay)])
        }
        try await side.journal.wait(for: "failed CBError invalidParameters", 3)
        #expect(peripheral.state == .disconnected)
        side.manager.connect(peripheral, options: [CBConnectPeripheralOptionStartDelayKey: NSNumber(value: 86_400)])
        #expect(peripheral.state == .connecting)
        #expect(adapter.journal.count("connect") == 0)
        // The wait is cancelled with the connection.
        side.manager.cancelPeripheralConnection(peripheral)
        try await side.journal.wait(for: "disconnected ok")
        #expect(adapter.journal.count("connect") == 0)
    }

    @Test func aFailedConnectionCanBeTriedAgain() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        adapter.central.failure.current = BluetoothError(.connectionFailed, "no")
        side.manager.connect(peripheral)
        try await side.journal.wait(for: "failed CBError connectionFailed")
        #expect(peripheral.state == .disconnected)
        side.manager.connect(peripheral)
        try await side.journal.wait(for: "connected")
    }

    // MARK: Writing

    @Test func oneRefusalIsOneReadySignal() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter, quirks: .readyOnlyAfterFullQueue)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        let events = try some(connection.events.current)
        // Nobody waits, so nobody is told.
        events.peripheralIsReadyToWrite()
        #expect(peripheral.canSendWriteWithoutResponse)
        for round in 1...3 {
            connection.space.current = 1
            for byte in 0..<3 as Range<UInt8> {
                peripheral.writeValue(Data([UInt8(round), byte]), for: characteristic, type: .withoutResponse)
            }
            #expect(!peripheral.canSendWriteWithoutResponse)
            // One goes; another is refused, so it is not yet told.
            connection.space.current = 1
            events.peripheralIsReadyToWrite()
            side.checked.queue.sync {}
            #expect(side.journal.count("ready") == round - 1)
            #expect(!peripheral.canSendWriteWithoutResponse)
            connection.space.current = .max
            for _ in 0..<3 { events.peripheralIsReadyToWrite() }
            side.checked.queue.sync {}
            #expect(side.journal.count("ready") == round)
            #expect(peripheral.canSendWriteWithoutResponse)
        }
        let sent = adapter.journal.all.filter { $0.hasPrefix("command") }
        #expect(sent == (1...3).flatMap { round in (0..<3).map { "command [\(round), \($0)]" } })
    }

    /// The bytes that wait are bounded too, and those that have gone count no more.
    @Test func theBytesOfTheQueueAreBounded() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        for round in 1...2 {
            connection.space.current = 0
            let dropped = MisuseLog.count("the queue is full") {
                for _ in 0..<1500 {
                    peripheral.writeValue(Data(count: 182), for: characteristic, type: .withoutResponse)
                }
            }
            #expect(dropped == 1500 - 262_144 / 182, "in round \(round)")
            let small = MisuseLog.count("the queue is full") {
                for _ in 0..<5000 { peripheral.writeValue(Data(), for: characteristic, type: .withoutResponse) }
            }
            #expect(small == 5000 - (4096 - 262_144 / 182), "in round \(round)")
            connection.space.current = .max
            try some(connection.events.current).peripheralIsReadyToWrite()
        }
    }

    /// A ready call follows each write, and none comes without one.
    @Test func eachWriteIsFollowedByAReadyCall() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        for round in 1...5 {
            peripheral.writeValue(Data([UInt8(round)]), for: characteristic, type: .withoutResponse)
            try await side.journal.wait(for: "ready", round)
        }
        try some(connection.events.current).peripheralIsReadyToWrite()
        side.checked.queue.sync {}
        #expect(side.journal.count("ready") == 5)
        // Not while the adapter has no room.
        connection.space.current = 0
        peripheral.writeValue(Data([6]), for: characteristic, type: .withoutResponse)
        side.checked.queue.sync {}
        #expect(side.journal.count("ready") == 5)
        connection.space.current = .max
        try some(connection.events.current).peripheralIsReadyToWrite()
        try await side.journal.wait(for: "ready", 6)
    }

    @Test func theQueueOfWritesIsBounded() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter, quirks: .shallowWriteQueue)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.space.current = 0
        let dropped = MisuseLog.count("the queue is full") {
            for byte in 0..<25 as Range<UInt8> {
                peripheral.writeValue(Data([byte]), for: characteristic, type: .withoutResponse)
            }
        }
        #expect(dropped == 5)
        connection.space.current = .max
        try some(connection.events.current).peripheralIsReadyToWrite()
        #expect(adapter.journal.all.filter { $0.hasPrefix("command") } == (0..<20).map { "command [\($0)]" })
        // A value that is too long is dropped at once.
        #expect(
            MisuseLog.count("183 bytes are more than") {
                peripheral.writeValue(Data(count: 183), for: characteristic, type: .withoutResponse)
            } == 1)
        peripheral.writeValue(Data(count: 182), for: characteristic, type: .withoutResponse)
        #expect(adapter.journal.count("command") == 21)
    }

    /// A write without response stays behind the requests before it, and before those after it.
    @Test func requestsAndWritesKeepTheirOrder() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.gate.hold()
        peripheral.writeValue(Data([1]), for: characteristic, type: .withResponse)
        peripheral.writeValue(Data([2]), for: characteristic, type: .withoutResponse)
        peripheral.readValue(for: characteristic)
        peripheral.writeValue(Data([3]), for: characteristic, type: .withoutResponse)
        try await adapter.journal.wait(for: "request [1]")
        peripheral.writeValue(Data([4]), for: characteristic, type: .withoutResponse)
        #expect(adapter.journal.count("command") == 0)
        #expect(adapter.journal.count("read") == 0)
        connection.gate.release()
        try await side.journal.wait(for: "ready")
        try await side.journal.wait(for: "value 1 ok")
        let order = adapter.journal.all.filter {
            ["request", "command", "read"].contains($0.split(separator: " ").first ?? "")
        }
        #expect(order == ["request [1]", "command [2]", "read", "command [3]", "command [4]"])
        #expect(side.journal.count("ready") == 1)
    }

    /// Also when nothing else waits behind the request that is under way.
    @Test func aWriteWaitsForTheRequestBeforeIt() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.gate.hold()
        peripheral.writeValue(Data([1]), for: characteristic, type: .withResponse)
        try await adapter.journal.wait(for: "request [1]")
        peripheral.writeValue(Data([2]), for: characteristic, type: .withoutResponse)
        #expect(adapter.journal.count("command") == 0)
        #expect(!peripheral.canSendWriteWithoutResponse)
        connection.gate.release()
        try await side.journal.wait(for: "ready")
        #expect(adapter.journal.count("command [2]") == 1)
    }

    /// Writes that the adapter refused are dropped by the program's cancellation, also while its end is not reported.
    @Test func queuedWritesAreNotSentAfterCancel() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.space.current = 0
        peripheral.writeValue(Data([1]), for: characteristic, type: .withoutResponse)
        side.manager.cancelPeripheralConnection(peripheral)
        connection.space.current = .max
        let events = try some(connection.events.current)
        events.peripheralIsReadyToWrite()
        events.peripheralDidDisconnect(BluetoothError(.notConnected, "closed"))
        try await side.journal.wait(for: "disconnected ok")
        #expect(adapter.journal.count("command") == 0)
        #expect(side.journal.count("ready") == 0)
    }

    @Test func whatIsPendingAtTheEndCompletesNoMore() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.gate.hold()
        peripheral.readValue(for: characteristic)
        peripheral.readValue(for: characteristic)
        try await adapter.journal.wait(for: "read")
        let events = try some(connection.events.current)
        events.peripheralDidDisconnect(BluetoothError(.connectionFailed, "lost"))
        try await side.journal.wait(for: "disconnected")
        connection.gate.release()
        connection.notify([1])
        events.peripheralIsReadyToWrite()
        events.peripheralDidModifyServices([AttributeID(rawValue: 1)])
        // What was of the old connection is of no use on a new one.
        side.manager.connect(peripheral)
        try await side.journal.wait(for: "connected", 2)
        peripheral.readValue(for: characteristic)
        try await side.journal.wait(for: "value 0 CBError invalidHandle")
        side.checked.queue.sync {}
        #expect(side.journal.count("value") == 1)
        #expect(side.journal.count("modified") == 0)
        #expect(adapter.journal.count("read") == 1)
        #expect(peripheral.services == nil)
    }

    // MARK: Values

    @Test func aBlockedDelegatePausesThePeripheralAndTakesEverythingInTheEnd() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let journal = adapter.journal
        side.onValue = { _ in journal.add("delivered") }
        let (_, _, connection) = try await connected(adapter, side)
        side.checked.hold()
        for _ in 0..<255 { connection.notify([1]) }
        #expect(journal.count("receiving") == 0)
        for _ in 0..<45 { connection.notify([1]) }
        #expect(journal.count("receiving false") == 1)
        side.checked.queue.resume()
        try await journal.wait(for: "delivered", 300)
        let lines = journal.all.filter { $0 == "delivered" || $0.hasPrefix("receiving t") }
        #expect(lines.firstIndex(of: "receiving true") == 300 - 64 - 1)
        side.checked.hold()
        for _ in 0..<256 { connection.notify([1]) }
        #expect(journal.count("receiving false") == 2)
        side.checked.queue.resume()
        try await journal.wait(for: "receiving true", 2)
    }

    @Test func valuesThatWaitAreBounded() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let journal = adapter.journal
        side.onValue = { _ in journal.add("delivered") }
        let (_, _, connection) = try await connected(adapter, side)
        side.checked.hold()
        let dropped = MisuseLog.count("a value was dropped") { for _ in 0..<8_200 { connection.notify([1]) } }
        #expect(dropped == 8)
        side.checked.queue.resume()
        try await journal.wait(for: "delivered", 8_192)
        connection.notify([1])
        try await journal.wait(for: "delivered", 8_193)
        #expect(journal.count("receiving") == 2)
    }

    @Test func valuesThatComeWithASubscriptionFollowItsReport() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.early.current = [[1], [2, 2]]
        connection.gate.hold()
        peripheral.setNotifyValue(true, for: characteristic)
        try await until("the values are there") { connection.early.current.count == 2 }
        connection.gate.release()
        try await side.journal.wait(for: "value 2")
        connection.notify([3, 3, 3])
        try await side.journal.wait(for: "value 3")
        let lines = side.journal.all.filter { $0.hasPrefix("value") || $0.hasPrefix("notifying") }
        #expect(lines == ["notifying true ok", "value 1 ok", "value 2 ok", "value 3 ok"])
    }

    /// A peripheral that is paused may never answer, so what was held for its answer is delivered without it.
    @Test func heldValuesAreDeliveredOnceThePeripheralIsPaused() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        connection.early.current = (0..<300).map { [UInt8](repeating: 1, count: 1 + $0 % 20) }
        connection.gate.hold()
        peripheral.setNotifyValue(true, for: characteristic)
        try await side.journal.wait(for: "value", 300)
        #expect(side.journal.count("notifying") == 0)
        #expect(side.values.withLock { $0.map(\.count) } == (0..<300).map { 1 + $0 % 20 })
        connection.gate.release()
        try await side.journal.wait(for: "notifying true ok")
    }

    @Test func servicesThatChangedAreToldAndForgotten() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, characteristic, connection) = try await connected(adapter, side)
        try some(connection.events.current).peripheralDidModifyServices([AttributeID(rawValue: 1)])
        try await side.journal.wait(for: "modified [\(testService)]")
        #expect(peripheral.services?.isEmpty == true)
        // Values of what is gone go nowhere.
        connection.notify([1])
        side.checked.queue.sync {}
        #expect(side.journal.count("value") == 0)
        let again = try await discoverAgain(side, peripheral)
        #expect(again !== characteristic)
    }

    private func discoverAgain(_ side: CentralSide, _ peripheral: CBPeripheral) async throws -> CBCharacteristic {
        side.journal.clear()
        return try await side.discover(peripheral)
    }

    @Test func thePowerTakesEverythingWithoutAWord() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let (peripheral, _, connection) = try await connected(adapter, side)
        side.manager.scanForPeripherals(withServices: nil)
        let events = try some(adapter.central.events.current)
        events.centralAdapterDidChange(.poweredOff)
        try await side.journal.wait(for: "state poweredOff")
        #expect(!side.manager.isScanning)
        #expect(peripheral.state == .disconnected)
        #expect(peripheral.services == nil)
        #expect(adapter.journal.count("disconnect") == 1)
        try some(connection.events.current).peripheralDidDisconnect(BluetoothError(.notPoweredOn, "off"))
        events.centralAdapterDidChange(.poweredOn)
        try await side.journal.wait(for: "state poweredOn", 2)
        #expect(side.journal.count("disconnected") == 0)
        side.manager.connect(peripheral)
        try await side.journal.wait(for: "connected", 2)
    }
}
