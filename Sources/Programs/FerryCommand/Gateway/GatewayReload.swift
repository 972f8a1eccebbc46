#if NATS && Records
    import Ferry
    import FerryTransports
    import Foundation
    import Synchronization

    /// Runs a gateway, and anew with what its configuration says then when SIGHUP comes: peers' links end, and they come again. What
    /// cannot be read changes nothing.
    final class GatewayReload: Sendable {
        private struct State {
            var plan: GatewayRun
            /// The next run's plan, once SIGHUP has come.
            var next: GatewayRun?
            var cancel: (@Sendable () -> Void)?
        }

        private let state: Mutex<State>
        private let notifier: ServiceNotifier
        private let readAgain: @Sendable () throws -> GatewayRun

        /// - Parameters:
        ///   - notifier: tells the service manager.
        ///   - readAgain: what the configuration says when it is called.
        init(_ plan: GatewayRun, _ notifier: ServiceNotifier, readAgain: @escaping @Sendable () throws -> GatewayRun) {
            state = Mutex(State(plan: plan))
            self.notifier = notifier
            self.readAgain = readAgain
        }

        /// What runs now.
        var plan: GatewayRun { state.withLock { $0.plan } }

        /// Until the task is cancelled.
        func run(_ say: @escaping @Sendable (String) -> Void) async throws {
            ProcessSignals.hear([SIGHUP]) { [self] _ in
                // Reading a file and a key takes time, and the thread of signals hears Ctrl-C.
                DispatchQueue.global().async { self.read(say) }
            }
            while true {
                let running = plan
                let task = Task { try await running.run(say) }
                let isLate = state.withLock { state in
                    state.cancel = task.cancel
                    return state.next != nil
                }
                if isLate { task.cancel() }
                let result = await withTaskCancellationHandler {
                    await task.result
                } onCancel: {
                    task.cancel()
                }
                running.log.flush()
                let goesOn = state.withLock { state in
                    guard let next = state.next else { return false }
                    (state.plan, state.next, state.cancel) = (next, nil, nil)
                    return true
                }
                guard goesOn, !Task.isCancelled else {
                    notifier.ends()
                    return try result.get()
                }
            }
        }

        private func read(_ say: @Sendable (String) -> Void) {
            let next: GatewayRun
            do { next = try readAgain() } catch {
                let reason = (error as? FerryError)?.message ?? "\(error)"
                return note("ferry: Nothing is changed. \(reason)")
            }
            say("the configuration was read again")
            notifier.reloads()
            let cancel = state.withLock { state in
                state.next = next
                return state.cancel
            }
            cancel?()
        }
    }
#endif
