package import Ferry
import Synchronization

/// One task's wait for an adapter to be powered on, fed by a role's state events.
package final class PowerWait: Sendable {
    private struct State {
        var adapter: AdapterState?
        var waiter: Waiter<AdapterState?>?
    }

    /// How long an adapter may take to say whether it is on.
    private static let patience = Duration.seconds(10)
    private let guarded = Mutex(State())

    package init() {}

    /// What the role's last event said; nil before the first.
    package var state: AdapterState? { guarded.withLock { $0.adapter } }

    /// What a role's state event says.
    package func note(_ state: AdapterState) {
        let waiter = guarded.withLock { guarded in
            guarded.adapter = state
            return Self.isPassing(state) ? nil : guarded.waiter.take()
        }
        waiter?.resume(.success(state))
    }

    /// Returns once the adapter is on.
    ///
    /// - Throws: `transportUnavailable` with what to do, when it is off, missing or forbidden, or does not say within 10 s; `cancelled`.
    package func wait(for name: String, _ time: any TimeSource) async throws(FerryError) {
        let waiter = Waiter<AdapterState?>()
        var state = guarded.withLock { guarded in
            guarded.waiter = waiter
            return guarded.adapter
        }
        if Self.isPassing(state) {
            let timer = time.schedule(at: time.now + Self.patience) { [weak self] in
                waiter.resume(.success(self?.state))
            }
            defer { timer.cancel() }
            state = (try? await waiter.wait()) ?? nil
        }
        guard state != .poweredOn else { return }
        guard !Task.isCancelled else {
            throw FerryError(.cancelled, "The task was cancelled while it waited for adapter \(name).")
        }
        throw FerryError(.transportUnavailable, "Adapter \(name) \(Self.advice(state))")
    }

    /// States that will change by themselves soon.
    private static func isPassing(_ state: AdapterState?) -> Bool {
        state == nil || state == .unknown || state == .resetting
    }

    private static func advice(_ state: AdapterState?) -> String {
        switch state {
        case .poweredOn: ""
        case .poweredOff: "is switched off. Switch it on and try again."
        case .unauthorized: "may not be used by this process. Give it the permission and try again."
        case .unsupported: "does not support Bluetooth LE. Choose another adapter."
        case nil, .unknown, .resetting: "did not become ready within \(patience)."
        }
    }
}
