import DequeModule
import Ferry
import FerryBluetooth
import Foundation

/// One connection of a peripheral, from the call of `connect` to its end: carries out commands in the order of the
/// calls, and hands over what happens.
final class PeripheralSession: PeripheralConnectionEvents {
    /// Runs on the connection, in the order of the calls.
    private enum Command {
        case request((any PeripheralConnection) async -> Void)
        case write([UInt8], AttributeID)
    }

    /// What the head of the commands does.
    private enum Sending {
        case idle
        /// A request runs; the commands behind it wait.
        case requesting
        /// The adapter refused the write at the head.
        case full
    }

    private struct State {
        var phase = PeripheralPhase.idle
        var commands: Deque<Command> = []
        var sending = Sending.idle
        var queuedWrites = 0
        var queuedBytes = 0
        var owesReady = false
        var readyCalls = ReadyCalls()
        /// A ready call is on its way to the delegate.
        var isReadyPosted = false
        var hasDiscovered = false
        /// Values that were written without response, counted up to `CBQuirks.shortValues`.
        var written = 0
        var undelivered = 0
        var isPaused = false
        /// Values of characteristics whose subscription has not been reported yet.
        var held: [AttributeID: [Data]] = [:]
        var attributes: [AttributeID: CBAttribute] = [:]
    }

    /// Writes without response, and bytes of them, that are kept when the adapter takes no more; further ones are dropped,
    /// as Apple's drops them. Phones take some hundred kilobytes (deviceplug/btleplug 441 lost some of two megabytes); those
    /// of 2015 took 20 writes (openradar 20394802).
    static let mostQueuedWrites = 4096
    static let mostQueuedBytes = 262_144
    static let shallowQueue = 20
    /// Values that may wait for the delegate before the peer is asked to pause.
    static let mostUndelivered = 256
    /// Values that wait at most, where the adapter cannot have the peer pause; further ones are dropped.
    static let mostKept = 8192

    let reconnects: Bool
    let quirks: CBQuirks
    /// A name that no other session has.
    let identifier = UUID()
    private let state = Guarded(State())
    private let peripheral: WeakReference<CBPeripheral>
    private let callbacks: Callbacks

    init(_ peripheral: CBPeripheral, _ callbacks: Callbacks, _ quirks: CBQuirks, reconnects: Bool) {
        self.quirks = quirks
        self.peripheral = WeakReference(peripheral)
        self.callbacks = callbacks
        self.reconnects = reconnects
    }

    // MARK: Connecting and disconnecting

    /// Begins to connect, after a delay in seconds. The attempt does not expire.
    func start(_ role: any CentralRole, to peer: PeerID, delay: Double) {
        state { state in
            guard case .idle = state.phase else { return }
            let task = Task {
                do throws(BluetoothError) {
                    if delay > 0 {
                        do { try await Task.sleep(for: .seconds(delay)) } catch {
                            throw BluetoothError(.cancelled, "the wait was cancelled")
                        }
                    }
                    let connection = try await role.connect(to: peer, events: self)
                    transition { $0.didConnect(connection) }
                } catch {
                    transition { $0.didFail(error) }
                }
            }
            state.phase = .connecting(task, end: nil)
        }
    }

    /// Ends the connection, or the wait for it.
    func cancel() { transition { $0.cancel() } }

    func peripheralDidDisconnect(_ reason: BluetoothError) { transition { $0.didDisconnect(reason) } }

    /// Changes the phase under the lock, then does what follows.
    private func transition(_ event: (inout PeripheralPhase) -> PeripheralPhase.Action) {
        let action = state { state in
            let action = event(&state.phase)
            if case .ended = state.phase { clear(&state) }
            return action
        }
        switch action {
        case .none: break
        case .reportConnected: tell { $0.sessionDidConnect(self) }
        case .reportConnectedAndEnded(let reason):
            tell { $0.sessionDidConnect(self) }
            tell { $0.sessionDidEnd(self, reason) }
        case .reportFailed(let error): tell { $0.sessionDidFail(self, error) }
        case .reportEnded(let reason): tell { $0.sessionDidEnd(self, reason) }
        case .cancel(let task): task.cancel()
        case .disconnect(let connection): connection.disconnect()
        case .disconnectAndReportEnded(let connection):
            connection.disconnect()
            tell { $0.sessionDidEnd(self, nil) }
        }
    }

    /// After the end. Values that have arrived are delivered, though their subscription is not reported any more.
    private func clear(_ state: inout State) {
        state.commands = []
        for id in Array(state.held.keys) { release(id, &state) }
        state.attributes = [:]
    }

    /// Runs a callback on the program's queue, if the peripheral is still there.
    private func tell(_ body: @escaping (CBPeripheral) -> Void) {
        callbacks.run { [peripheral] in
            if let peripheral = peripheral.object { body(peripheral) }
        }
    }

    /// The same, as long as the end of the connection has not been reported, after which nothing may follow.
    private func tellWhileCurrent(_ body: @escaping (CBPeripheral) -> Void) {
        tell { peripheral in
            if peripheral.contents({ $0.session === self }) { body(peripheral) }
        }
    }

    // MARK: Attributes

    /// The object of an attribute: always the same one on one connection.
    func attribute<Object: CBAttribute>(_ id: AttributeID, make: () -> Object) -> Object {
        state { state in
            if let known = state.attributes[id] as? Object { return known }
            let made = make()
            state.attributes[id] = made
            return made
        }
    }

    // MARK: Commands

    /// Carries out a request and hands its result over on the program's queue.
    func request<Value: Sendable>(
        _ work: @escaping (any PeripheralConnection) async throws(BluetoothError) -> Value,
        then finish: @escaping (CBPeripheral, Result<Value, BluetoothError>) -> Void
    ) {
        let start = state { state in
            guard state.phase.usable != nil else { return false }
            state.commands.append(
                .request { [self] connection in
                    let result: Result<Value, BluetoothError>
                    do throws(BluetoothError) { result = .success(try await work(connection)) } catch {
                        result = .failure(error)
                    }
                    // A request that is pending at a disconnection does not complete.
                    if case .failure = result, !isUsable { return }
                    tellWhileCurrent { finish($0, result) }
                })
            return advance(&state)
        }
        if start { Task { await runRequest() } }
    }

    /// Whether the connection takes requests and writes.
    private var isUsable: Bool { state { $0.phase.usable != nil } }

    /// Sends what may go now; true when a request is to be run next.
    private func advance(_ state: inout State) -> Bool {
        guard let connection = state.phase.usable, state.sending != .requesting else { return false }
        while state.sending == .idle, case .write(let value, let id)? = state.commands.first {
            guard send(value, to: id, on: connection) else {
                state.sending = .full
                break
            }
            state.commands.removeFirst()
            state.queuedWrites -= 1
            state.queuedBytes -= value.count
        }
        guard case .request? = state.commands.first else { return false }
        state.sending = .requesting
        return true
    }

    /// False when the queue is full. What the adapter refuses for good is gone, as a write without response is.
    private func send(_ value: [UInt8], to id: AttributeID, on connection: any PeripheralConnection) -> Bool {
        do throws(BluetoothError) {
            return try connection.tryWriteValue(value.span.bytes, to: id, type: .withoutResponse)
        } catch {
            Misuse.report("a write without response was dropped: \(error.message)")
            return true
        }
    }

    private func runRequest() async {
        while true {
            let next: (any PeripheralConnection, (any PeripheralConnection) async -> Void)? = state { state in
                guard let connection = state.phase.usable, case .request(let work)? = state.commands.popFirst() else {
                    state.sending = .idle
                    return nil
                }
                return (connection, work)
            }
            guard let (connection, work) = next else { return }
            await work(connection)
            let goesOn = state { state in
                state.sending = .idle
                return advance(&state)
            }
            signalReady()
            guard goesOn else { return }
        }
    }

    // MARK: Writes without response

    var canWriteWithoutResponse: Bool {
        state { state in
            state.phase.usable != nil && state.queuedWrites == 0 && !quirks.contains(.silentInBackground)
                && (state.written > 0 || !quirks.contains(.cannotSendBeforeFirstWrite))
        }
    }

    /// Whether no request runs and no command is queued.
    var isIdle: Bool { state { $0.sending != .requesting && $0.commands.isEmpty } }

    var attMTU: Int { connectedMTU ?? 23 }
    /// Nil before there is a connection.
    var connectedMTU: Int? {
        state { state in
            state.phase.connection.map {
                quirks.contains(.lateATTMTU) && state.written < CBQuirks.shortValues ? 23 : $0.attMTU
            }
        }
    }

    func countWrite() { state { $0.written = min($0.written + 1, CBQuirks.shortValues) } }

    /// Whether the services that are shown now are those that the system knows from before.
    func isFirstDiscovery() -> Bool {
        state { state in
            defer { state.hasDiscovered = true }
            return quirks.contains(.cachedServices) && !state.hasDiscovered
        }
    }

    func writeWithoutResponse(_ value: Data, to id: AttributeID) {
        let bytes = [UInt8](value)
        let problem: String? = state { state in
            guard let connection = state.phase.usable else { return "the peripheral is not connected" }
            let isShort = quirks.contains(.lateATTMTU) && state.written < CBQuirks.shortValues
            guard bytes.count <= (isShort ? 20 : connection.maximumWriteLength(.withoutResponse)) else {
                return "\(bytes.count) bytes are more than maximumWriteValueLength(for: .withoutResponse)"
            }
            state.written = min(state.written + 1, CBQuirks.shortValues)
            if !quirks.contains(.readyOnlyAfterFullQueue) { state.owesReady = true }
            if state.commands.isEmpty, state.sending == .idle {
                if send(bytes, to: id, on: connection) { return nil }
                state.sending = .full
            }
            let most = quirks.contains(.shallowWriteQueue) ? Self.shallowQueue : Self.mostQueuedWrites
            guard state.queuedWrites < most, state.queuedBytes + bytes.count <= Self.mostQueuedBytes else {
                return "the queue is full; wait for peripheralIsReady(toSendWriteWithoutResponse:)"
            }
            state.commands.append(.write(bytes, id))
            state.queuedWrites += 1
            state.queuedBytes += bytes.count
            state.owesReady = true
            return nil
        }
        if let problem { Misuse.report("a write without response was dropped: \(problem)") }
        signalReady()
    }

    func peripheralIsReadyToWrite() {
        let start = state { state in
            if state.sending == .full { state.sending = .idle }
            return advance(&state)
        }
        if start { Task { await runRequest() } }
        signalReady()
    }

    /// Tells the delegate that there is room, one call at a time: after each write, for that is what programs have come to
    /// wait for.
    private func signalReady() {
        let isDue = state { state in
            guard quirks.isDisjoint(with: [.silentInBackground, .neverSaysReady]), state.owesReady,
                !state.isReadyPosted, state.queuedWrites == 0, state.phase.usable != nil
            else {
                return false
            }
            state.owesReady = false
            state.isReadyPosted = true
            return true
        }
        guard isDue else { return }
        tell { peripheral in
            let isLost = self.state { state in
                state.isReadyPosted = false
                return state.readyCalls.isLost(self.quirks)
            }
            guard !isLost, peripheral.contents({ $0.session === self }) else { return }
            peripheral.delegate?.peripheralIsReady(toSendWriteWithoutResponse: peripheral)
            // A write meanwhile owes another call.
            self.signalReady()
        }
    }

    // MARK: Values

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        let data = value.withUnsafeBytes { Data($0) }
        state { state in
            guard let target = state.attributes[characteristic] as? CBCharacteristic else { return }
            guard state.undelivered < Self.mostKept else {
                return Misuse.report("a value was dropped: \(Self.mostKept) wait for the delegate already")
            }
            state.undelivered += 1
            if state.held[characteristic] == nil {
                deliver(data, to: target)
            } else {
                state.held[characteristic]?.append(data)
            }
            guard state.undelivered >= Self.mostUndelivered, !state.isPaused else { return }
            state.isPaused = true
            state.phase.connection?.setReceiving(false)
            // A pause may keep the answer away that the held values wait for.
            for id in Array(state.held.keys) { release(id, &state) }
        }
    }

    private func deliver(_ value: Data, to characteristic: CBCharacteristic) {
        tell { peripheral in
            self.didDeliver()
            guard peripheral.contents({ $0.session === self }) else { return }
            characteristic.contents { $0.value = value }
            peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: characteristic, error: nil)
        }
    }

    private func didDeliver() {
        state { state in
            state.undelivered -= 1
            if state.isPaused, state.undelivered <= Self.mostUndelivered / 4 {
                state.isPaused = false
                state.phase.connection?.setReceiving(true)
            }
        }
    }

    /// Keeps the values of a characteristic until its subscription has been reported, so that the program sees them
    /// after.
    func hold(_ id: AttributeID) { state { if $0.held[id] == nil { $0.held[id] = [] } } }

    /// Delivers the kept values.
    func release(_ id: AttributeID) { state { release(id, &$0) } }

    /// Under the lock, so that no later value overtakes them.
    private func release(_ id: AttributeID, _ state: inout State) {
        let values = state.held.removeValue(forKey: id) ?? []
        guard let characteristic = state.attributes[id] as? CBCharacteristic else {
            state.undelivered -= values.count
            return
        }
        for value in values { deliver(value, to: characteristic) }
    }

    func peripheralDidModifyServices(_ services: [AttributeID]) {
        tellWhileCurrent { peripheral in
            peripheral.manager.object?.registry.memory.forgetServices(of: peripheral.peerIdentifier)
            peripheral.sessionDidModifyServices(self, services)
        }
    }

    /// Forgets attributes that are not valid any more.
    func forget(_ ids: [AttributeID]) -> [CBAttribute] {
        state { state in ids.compactMap { state.attributes.removeValue(forKey: $0) } }
    }
}
