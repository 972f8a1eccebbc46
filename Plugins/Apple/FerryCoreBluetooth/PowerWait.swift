import CoreBluetooth
import FerryBluetooth

/// Lets the first calls of a role wait until the system has said whether Bluetooth can be used.
final class PowerWait: Sendable {
    private let state = Locked((isKnown: false, waiting: [Waiter<Void>]()))

    /// The longest wait, in seconds; then the call fails as any does without power.
    private static let longest = 5.0

    /// The system has said it, or the role was closed.
    func end() {
        let waiting = state { state in
            defer { state = (true, []) }
            return state.waiting
        }
        for waiter in waiting { waiter.resume(.success(())) }
    }

    func pass(_ queue: DispatchQueue) async throws(BluetoothError) {
        let waiter = Waiter<Void>()
        let isKnown = state { state in
            if !state.isKnown { state.waiting.append(waiter) }
            return state.isKnown
        }
        if isKnown { return }
        queue.run(after: Self.longest) { waiter.resume(.success(())) }
        try await waiter.wait()
    }
}
