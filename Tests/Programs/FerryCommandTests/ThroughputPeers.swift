import Ferry
import FerryBluetooth
import Synchronization

@testable import FerryCommand
@testable import FerryLab

/// The peer's side of throughput services that others have made, rebuilt from their sources.
final class ThroughputPeer: PeripheralRoleEvents {
    private struct State {
        var role: (any PeripheralRole)?
        var sink: AttributeID?
        var source: AttributeID?
        var count: UInt32 = 0
        var bytes: UInt32 = 0
        var start: Timestamp = .zero
        var last: Timestamp = .zero
        var isNotifying = false
        var sent: UInt32 = 0
        var isAnswered = false
        var answer: [UInt8]?
        /// Packets of bumble-bench whose number is not the next one, or whose time goes back.
        var unexpected = 0
        var time: UInt32 = 0
    }

    private let kind: PeerService
    /// Packets that it sends, as `bumble-bench --scenario send` does; 0 for a receiver.
    private let packets: UInt32
    private let time: any TimeSource
    private let state = Mutex(State())

    init(_ kind: PeerService, _ time: any TimeSource, packets: UInt32 = 0) {
        self.kind = kind
        self.time = time
        self.packets = packets
    }

    /// Bits a second that it measures of what arrives.
    var rate: Double {
        state.withLock { state in
            let seconds = (state.last - state.start) / .seconds(1)
            return seconds > 0 ? Double(state.bytes) * 8 / seconds : 0
        }
    }

    func start(on adapter: any BluetoothAdapter) async throws {
        let role = adapter.openPeripheral(self)
        state.withLock { $0.role = role }
        var characteristics = [
            CharacteristicDefinition(
                kind.sink, properties: kind == .bumble ? [.write] : [.read, .write, .writeWithoutResponse],
                permissions: [.readable, .writeable])
        ]
        if let source = kind.source {
            characteristics.append(CharacteristicDefinition(source, properties: [.notify], permissions: [.readable]))
        }
        let published = try await role.publish(ServiceDefinition(kind.service, characteristics: characteristics))
        state.withLock { state in
            state.sink = published.characteristics.first
            state.source = published.characteristics.dropFirst().first
        }
        _ = try await role.startAdvertising(Advertisement(localName: "peer"))
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        state.withLock { $0.role }?.respond(to: request.id, with: .success([]))
        for part in request.parts { take(part.value) }
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        take(value.withUnsafeBytes { Array($0) })
    }

    private func take(_ bytes: [UInt8]) {
        state.withLock { state in
            let now = time.now
            // Nordic: a write of 1 byte begins anew. bumble-bench: so does a packet of type 0.
            if kind != .tput, bytes.count == 1 {
                (state.count, state.bytes, state.start, state.last) = (0, 0, now, now)
                return
            }
            if kind == .bumble, packets == 0 {
                let words = [2, 6].map { first in
                    bytes.count < 10 ? nil : (0..<4).reduce(0) { $0 | UInt32(bytes[first + $1]) << (8 * UInt32($1)) }
                }
                if words[0] != state.count || words[1].map({ $0 < state.time }) ?? true { state.unexpected += 1 }
                state.time = words[1] ?? 0
            }
            state.last = now
            // Nothing comes before what tput counts, so its first value begins the time.
            if kind == .tput, state.count == 0 { state.start = now } else { state.bytes += UInt32(bytes.count) }
            state.count += 1
            // The answer to the last packet that it sent.
            if kind == .bumble, packets > 0, bytes.first == 2 { state.isAnswered = true }
            if kind == .bumble, packets == 0, bytes.count >= 6, bytes[1] & 1 == 1 { state.answer = [2] + bytes[1..<6] }
        }
        notify()
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        let (role, value) = state.withLock { state -> ((any PeripheralRole)?, [UInt8]) in
            let seconds = (state.last - state.start) / .seconds(1)
            let rate = seconds > 0 ? UInt32(Double(state.bytes) * 8 / seconds) : 0
            return (
                state.role,
                [state.count, state.bytes, rate].flatMap { number in
                    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
                }
            )
        }
        role?.respond(to: request.id, with: .success(Array(value.dropFirst(request.offset))))
    }

    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        guard kind == .tput || packets > 0 else { return }
        state.withLock { $0.isNotifying = true }
        notify()
    }

    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        state.withLock { $0.isNotifying = false }
    }

    func peripheralIsReadyToUpdate() { notify() }

    private func notify() {
        while true {
            let (role, source, value) = state.withLock { state -> ((any PeripheralRole)?, AttributeID?, [UInt8]?) in
                guard packets == 0 else {
                    return (state.role, state.source, state.isNotifying ? packet(state.sent) : nil)
                }
                return (state.role, state.source, state.isNotifying ? [UInt8](repeating: 1, count: 244) : state.answer)
            }
            guard let role, let source, let value,
                (try? role.tryUpdateValue(value.span.bytes, of: source, for: .all)) == true
            else { return }
            state.withLock { state in
                state.answer = nil
                state.sent += 1
            }
        }
    }

    /// A reset, then numbered packets, the last of them with its flag.
    private func packet(_ number: UInt32) -> [UInt8]? {
        if number == 0 { return [0] }
        guard number <= packets else { return nil }
        let index = (0..<4).map { UInt8(truncatingIfNeeded: (number - 1) >> (8 * UInt32($0))) }
        return [1, number == packets ? 1 : 0] + index + [UInt8](repeating: 0, count: 238)
    }

    /// Whether the last packet that it sent was answered.
    var isAnswered: Bool { state.withLock { $0.isAnswered } }
    /// Packets of bumble-bench that came out of order.
    var unexpected: Int { state.withLock { $0.unexpected } }
}
