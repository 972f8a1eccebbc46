package import Ferry
import Synchronization

/// Waits for an adapter to be powered on, fed by a role's state events.
package struct PowerWait: Sendable {
    private(set) var state: AdapterState?
    private var waiter: (@Sendable (AdapterState?) -> Void)?

    package init() {}

    /// States that will change by themselves soon.
    private static func isPassing(_ state: AdapterState?) -> Bool {
        state == nil || state == .unknown || state == .resetting
    }

    /// What a role's state event says.
    package mutating func note(_ newState: AdapterState) {
        state = newState
        if !Self.isPassing(newState) { settle() }
    }

    mutating func settle() {
        let settled = waiter
        waiter = nil
        settled?(state)
    }

    mutating func wait(_ body: @escaping @Sendable (AdapterState?) -> Void) {
        guard Self.isPassing(state) else { return body(state) }
        waiter = body
    }
}

/// How long an adapter may take to say whether it is on.
private let patience = Duration.seconds(10)

/// Returns once the adapter is on.
///
/// - Throws: `transportUnavailable` with what to do, when it is off, missing or forbidden, or does not say within 10 s.
package func waitForPower(
    of name: String, _ time: any TimeSource,
    _ access: @escaping @Sendable ((inout PowerWait) -> Void) -> Void
) async throws(FerryError) {
    let state: AdapterState? = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let timer = time.schedule(at: time.now + patience) { access { $0.settle() } }
            access { wait in
                wait.wait { state in
                    timer.cancel()
                    continuation.resume(returning: state)
                }
                if Task.isCancelled { wait.settle() }
            }
        }
    } onCancel: {
        access { $0.settle() }
    }
    let advice =
        switch state {
        case .poweredOn: ""
        case .poweredOff: "is switched off. Switch it on and try again."
        case .unauthorized: "may not be used by this process. Give it the permission and try again."
        case .unsupported: "does not support Bluetooth LE. Choose another adapter."
        case nil, .unknown, .resetting: "did not become ready within \(patience)."
        }
    guard state == .poweredOn else { throw FerryError(.transportUnavailable, "Adapter \(name) \(advice)") }
}
