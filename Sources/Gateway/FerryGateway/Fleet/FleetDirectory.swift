#if NATS && Records
    public import Ferry
    public import FerryFleet
    public import FerryNATS

    /// The contents of a fleet's bucket, for people: its leases, and its gateways' reports of themselves.
    public struct FleetDirectory: Sendable {
        private let bucket: NATSBucket

        /// Opens an existing bucket with any expiry.
        ///
        /// - Throws: `natsNotFound`, `natsWrongShape` for one without expiry, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`,
        ///   `natsFailed`.
        public static func open(_ name: String, on connection: NATSConnection) async throws(FerryError)
            -> FleetDirectory
        {
            FleetDirectory(bucket: try await NATSBucket.find(name, on: connection))
        }

        /// The lease of each peer, in the order of their names.
        ///
        /// - Throws: `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func leases() async throws(FerryError) -> [(peer: String, entry: LeaseEntry)] {
            var leases: [(peer: String, entry: LeaseEntry)] = []
            for key in try await bucket.keys() where !key.hasPrefix(LeaseNames.reports) {
                guard let peer = LeaseNames.peer(key), let entry = try await bucket.entry(key),
                    let lease = Lease(String(decoding: entry.bytes, as: UTF8.self))
                else { continue }
                leases.append((peer, LeaseEntry(lease, revision: entry.revision)))
            }
            return leases.sorted { $0.peer < $1.peer }
        }

        /// What each gateway said last, by its name.
        ///
        /// - Throws: `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func reports() async throws(FerryError) -> [(gateway: String, bytes: [UInt8])] {
            var reports: [(gateway: String, bytes: [UInt8])] = []
            for key in try await bucket.keys() where key.hasPrefix(LeaseNames.reports) {
                guard let entry = try await bucket.entry(key) else { continue }
                reports.append((String(key.dropFirst(LeaseNames.reports.count)), entry.bytes))
            }
            return reports.sorted { $0.gateway < $1.gateway }
        }
    }
#endif
