#if BlueZ
    import FerryBluetooth
    import Synchronization

    /// Lets one task through at a time, in the order of the calls.
    final class AsyncLock: Sendable {
        private struct State {
            var isTaken = false
            var waiters: [Waiter<Void>] = []
        }

        private let state = Mutex(State())

        func lock() async throws(BluetoothError) {
            let waiter = state.withLock { state -> Waiter<Void>? in
                guard state.isTaken else {
                    state.isTaken = true
                    return nil
                }
                let waiter = Waiter<Void>()
                state.waiters.append(waiter)
                return waiter
            }
            guard let waiter else { return }
            do throws(BluetoothError) { try await waiter.wait() } catch {
                // Cancelled while it waited; if the lock has been handed to it nevertheless, it goes on to the next.
                let isStillWaiting = state.withLock { state in
                    defer { state.waiters.removeAll { $0 === waiter } }
                    return state.waiters.contains { $0 === waiter }
                }
                if !isStillWaiting { unlock() }
                throw error
            }
        }

        func unlock() {
            let next = state.withLock { state -> Waiter<Void>? in
                guard !state.waiters.isEmpty else {
                    state.isTaken = false
                    return nil
                }
                return state.waiters.removeFirst()
            }
            next?.resume(.success(()))
        }
    }
#endif
