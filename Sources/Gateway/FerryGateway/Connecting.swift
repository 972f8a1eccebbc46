#if NATS && Records
    import Ferry
    import FerryNATS

    /// A connection to NATS that is made anew when it has ended: what a gateway, its leases and its downlink have in common.
    struct Connecting: Sendable {
        let servers: NATSConfiguration
        /// Whether a missing stream or bucket is made: then a missing one is not hopeless.
        let creates: Bool
        let pause: Duration
        let time: any TimeSource

        /// Connects, again and again, until the task is cancelled.
        ///
        /// - Parameters:
        ///   - use: uses a connection until that has ended. It says when all that it needs is open.
        ///   - failed: is told why it is tried again, and ends everything where it throws.
        /// - Throws: what `failed` does; and what no waiting mends, while nothing has been open yet.
        func run(
            _ use: (NATSConnection, _ isOpen: () -> Void) async throws(FerryError) -> Void,
            failed: (FerryError) async throws(FerryError) -> Void
        ) async throws(FerryError) {
            var wasOpen = false
            while !Task.isCancelled {
                do throws(FerryError) {
                    try await NATSConnection.with(servers) { connection throws(FerryError) in
                        try await use(connection) { wasOpen = true }
                    }
                } catch {
                    guard !Task.isCancelled else { return }
                    if !wasOpen && error.isHopelessForNATS(creates: creates) { throw error }
                    try await failed(error)
                }
                try? await time.sleep(for: pause)
            }
        }

        /// Looks for what would be made.
        ///
        /// - Returns: nil where it is not there, and would be made.
        static func find<Value>(
            creates: Bool, _ look: () async throws(FerryError) -> Value
        ) async throws(FerryError) -> Value? {
            do throws(FerryError) { return try await look() } catch {
                guard error.code == .natsNotFound && creates else { throw error }
                return nil
            }
        }

        /// The error for a connection that has ended.
        static var ended: FerryError {
            FerryError(.natsNoServer, "The connection to NATS has ended. It is made anew.")
        }
    }
#endif
