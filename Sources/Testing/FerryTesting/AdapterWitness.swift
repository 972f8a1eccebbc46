import Ferry
import FerryBluetooth
import Synchronization

/// Both roles' owner, which writes down what it is told and answers as it is asked to.
final class AdapterWitness: PeripheralRoleEvents, CentralRoleEvents {
    struct Record {
        var peripheralEvents: [String] = []
        var centralEvents: [String] = []
        var discoveries: [Discovery] = []
        var subscribed: [ConnectedCentral] = []
        var unsubscribed = 0
        var disconnections: [BluetoothError] = []
        var reads: [ReadRequest] = []
        var requests: [WriteRequest] = []
        var writes: [[UInt8]] = []
        var readies = 0
        var channels: [any L2CAPChannel] = []
        var answerRead: (@Sendable (ReadRequest) -> Result<[UInt8], ATTError>)?
        var answerWrite: ATTError?
        var role: (any PeripheralRole)?
        var onReady: (@Sendable () -> Void)?
        var onSubscribed: (@Sendable () -> Void)?
    }

    let record = Mutex(Record())
    let calls: CallGuard
    /// The roles of one adapter are two objects: their events may overlap one another.
    private let centralCalls = CallGuard()

    init(calls: CallGuard) { self.calls = calls }

    func get<Value: Sendable>(_ read: (Record) -> Value) -> Value { record.withLock { read($0) } }

    @discardableResult
    private func note(_ name: String, _ change: (inout Record) -> Void = { _ in }) -> Bool {
        calls.event(name) {
            record.withLock { record in
                record.peripheralEvents.append(name)
                change(&record)
            }
        }
    }

    // MARK: Peripheral

    func peripheralAdapterDidChange(_ state: AdapterState) { note("state") }
    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        if note("subscribed", { $0.subscribed.append(central) }) { get { $0.onSubscribed }?() }
    }
    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        note("unsubscribed") { $0.unsubscribed += 1 }
    }
    func peripheralDidReceive(_ request: ReadRequest) {
        note("read") { $0.reads.append(request) }
        let (role, answer) = get { ($0.role, $0.answerRead) }
        if let answer { role?.respond(to: request.id, with: answer(request)) }
    }
    func peripheralDidReceive(_ request: WriteRequest) {
        note("write request") { $0.requests.append(request) }
        let (role, error) = get { ($0.role, $0.answerWrite) }
        role?.respond(to: request.id, with: error.map { .failure($0) } ?? .success([]))
    }
    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        let bytes = value.withUnsafeBytes { Array($0) }
        note("write") { $0.writes.append(bytes) }
    }
    func peripheralIsReadyToUpdate() {
        if note("ready", { $0.readies += 1 }) { get { $0.onReady }?() }
    }
    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
        note("disconnected") { $0.disconnections.append(reason) }
    }
    func peripheralDidOpen(_ channel: any L2CAPChannel) { note("channel") { $0.channels.append(channel) } }

    // MARK: Central

    func centralAdapterDidChange(_ state: AdapterState) {
        centralCalls.event("state") { record.withLock { $0.centralEvents.append("state") } }
    }
    func centralDidDiscover(_ discovery: Discovery) {
        centralCalls.event("discovered") {
            record.withLock { record in
                record.centralEvents.append("discovered")
                record.discoveries.append(discovery)
            }
        }
    }
}

/// A connection's owner that writes down what it is told.
final class ConnectionWitness: PeripheralConnectionEvents {
    struct Record {
        var values: [[UInt8]] = []
        var readies = 0
        var results: [Result<Void, BluetoothError>] = []
        var modifications = 0
        var modified: [AttributeID] = []
        var reasons: [BluetoothError] = []
        var afterEnd = 0
        var onReady: (@Sendable () -> Void)?
    }

    let record = Mutex(Record())
    let calls: CallGuard

    init(calls: CallGuard) { self.calls = calls }

    func get<Value: Sendable>(_ read: (Record) -> Value) -> Value { record.withLock { read($0) } }

    @discardableResult
    private func note(_ name: String, _ change: (inout Record) -> Void) -> Bool {
        calls.event(name) {
            record.withLock { record in
                if !record.reasons.isEmpty { record.afterEnd += 1 }
                change(&record)
            }
        }
    }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        let bytes = value.withUnsafeBytes { Array($0) }
        note("peripheralDidUpdate") { $0.values.append(bytes) }
    }
    func peripheralIsReadyToWrite() {
        if note("peripheralIsReadyToWrite", { $0.readies += 1 }) { get { $0.onReady }?() }
    }
    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        note("peripheralDidWrite") { $0.results.append(result) }
    }
    func peripheralDidChangeMTU(_ attMTU: Int) { note("peripheralDidChangeMTU") { _ in } }
    func peripheralDidModifyServices(_ services: [AttributeID]) {
        note("peripheralDidModifyServices") {
            $0.modifications += 1
            $0.modified += services
        }
    }
    func peripheralDidDisconnect(_ reason: BluetoothError) {
        note("peripheralDidDisconnect") { $0.reasons.append(reason) }
    }
}
