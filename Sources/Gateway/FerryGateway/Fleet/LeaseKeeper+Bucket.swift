#if NATS && Records
    public import Ferry
    import FerryFleet
    import FerryNATS

    /// The bucket's side: a connection that is made anew when it ends, and requests with their answers.
    extension LeaseKeeper {
        private static var mostRequests: Int { 256 }

        /// Connects once, and looks whether the bucket of leases is as it must be; makes nothing.
        ///
        /// - Returns: whether the bucket is there.
        /// - Throws: the obstacle, and what to do: `natsNoServer`, `natsRefused`, `natsInsecure`, `natsWrongShape` for a
        ///   bucket without expiry or with another one than the policy's time to live, `natsNotFound` where there is none and
        ///   ``Configuration/createsBucket`` is false, `invalidConfiguration`, `natsNotReady`, `timedOut`, `natsFailed`.
        public static func check(_ configuration: Configuration) async throws(FerryError) -> Bool {
            try await NATSConnection.with(configuration.servers) { connection throws(FerryError) in
                try await Connecting.find(creates: configuration.createsBucket) { () throws(FerryError) in
                    try await NATSBucket.open(
                        configuration.bucket, expiry: configuration.policy.timeToLive, creates: false, on: connection)
                } != nil
            }
        }

        /// Connects, until the task is cancelled.
        func stayConnected() async {
            let connecting = Connecting(
                servers: configuration.servers, creates: configuration.createsBucket, pause: .seconds(1), time: time)
            do throws(FerryError) {
                try await connecting.run { connection, isOpen throws(FerryError) in
                    let bucket = try await NATSBucket.open(
                        configuration.bucket, expiry: configuration.policy.timeToLive,
                        replicas: configuration.replicas, creates: configuration.createsBucket, on: connection)
                    let subject = LeaseNames.subject(configuration.bucket, configuration.name)
                    let messages = try await connection.messages(to: subject)
                    isOpen()
                    shell.withLock { state in
                        state.servers = (bucket, connection)
                        state.status.trouble = nil
                    }
                    observer?.observe(.connected(.leases, server: await connection.serverID()))
                    shell.wake()
                    await serve(connection, messages)
                    observer?.observe(.disconnected(.leases, isEnding: Task.isCancelled))
                    shell.withLock { $0.servers = nil }
                } failed: { error in
                    failed(error)
                }
            } catch {
                shell.withLock { state in
                    state.failure = error
                    state.end()
                }
                failed(error)
            }
        }

        private func failed(_ error: FerryError) {
            shell.withLock { $0.status.trouble = error.message }
            observer?.observe(.failed(.leases, error))
            shell.wake()
        }

        /// Hears other gateways, until the connection ends or the task is cancelled.
        private func serve(_ connection: NATSConnection, _ messages: AsyncStream<NATSMessage>) async {
            let events = connection.events()
            await withDiscardingTaskGroup { group in
                group.addTask {
                    for await message in messages {
                        guard let message = LeaseNames.message(message.bytes) else { continue }
                        self.shell.change { state, now in state.book.received(message, at: now) }
                    }
                }
                for await event in events {
                    switch event {
                    case .disconnected:
                        shell.withLock {
                            $0.status.trouble = "The connection to NATS is lost; leases cannot be renewed."
                        }
                        observer?.observe(.disconnected(.leases, isEnding: false))
                    case .reconnected(let server):
                        shell.withLock { $0.status.trouble = nil }
                        observer?.observe(.connected(.leases, server: server))
                    case .closed: group.cancelAll()
                    }
                }
                group.cancelAll()
            }
        }

        func send(_ message: NATSMessage) async {
            guard let connection = shell.withLock({ $0.servers?.connection }), connection.isConnected else { return }
            // Not retried here: the next renewal repeats it.
            try? await connection.publish(message)
        }

        func claim(_ what: String, of peer: String, under token: FencingToken) -> NATSMessage {
            LeaseNames.claim(what, of: peer, under: token, by: configuration.name, configuration.claims)
        }

        /// Says something of this gateway in the bucket, for ``FleetDirectory``; it is gone when nothing is said for as long as a lease
        /// lasts.
        ///
        /// - Parameter bytes: what it says, at most 64 KiB.
        /// - Throws: `natsNoServer` without a bucket; `messageTooLarge`, `natsNotReady`, `timedOut`, `closed`, `natsFailed`.
        public func report(_ bytes: [UInt8]) async throws(FerryError) {
            guard bytes.count <= 65_536 else {
                throw FerryError(.messageTooLarge, "A report has \(bytes.count) bytes, and can have 65536.")
            }
            guard let bucket = shell.withLock({ $0.servers?.bucket }) else {
                throw FerryError(.natsNoServer, "There is no bucket at present.")
            }
            try await bucket.set(LeaseNames.reports + configuration.name, bytes)
        }

        func ask(_ request: LeaseRequest) {
            let bucket = shell.withLock { state -> NATSBucket? in
                guard state.outstanding < Self.mostRequests, let bucket = state.servers?.bucket else { return nil }
                state.outstanding += 1
                return bucket
            }
            guard let bucket else { return answered(request, .unknown) }
            Task {
                let answer = await self.answer(bucket, request)
                shell.withLock { $0.outstanding -= 1 }
                answered(request, answer)
            }
        }

        private func answered(_ request: LeaseRequest, _ answer: LeaseAnswer) {
            shell.withLock { state in
                switch answer {
                case .stored: state.status.stored += 1
                case .refused: state.status.refused += 1
                case .unknown: state.status.unanswered += 1
                case .entry: break
                }
                state.book.answered(request.id, answer, at: time.now)
            }
            observer?.observe(.leaseAnswered(peer: request.peer, answer))
            shell.wake()
        }

        private func answer(_ bucket: NATSBucket, _ request: LeaseRequest) async -> LeaseAnswer {
            let key = LeaseNames.key(request.peer)
            do throws(FerryError) {
                switch request.operation {
                case .create(let lease):
                    return .stored(revision: try await bucket.create(key, Array(lease.description.utf8)))
                case .update(let lease, let last):
                    let revision = try await bucket.update(key, Array(lease.description.utf8), from: last)
                    return .stored(revision: revision)
                case .read:
                    guard let entry = try await bucket.entry(key) else { return .entry(nil) }
                    guard let lease = Lease(String(decoding: entry.bytes, as: UTF8.self)) else {
                        throw FerryError(
                            .natsWrongShape,
                            "Key \(key) of bucket \(bucket.name) has a value that is no lease. Does something else use the bucket?"
                        )
                    }
                    return .entry(LeaseEntry(lease, revision: entry.revision))
                }
            } catch {
                guard error.code != .natsConflict else { return .refused }
                shell.withLock { $0.status.trouble = error.message }
                return .unknown
            }
        }
    }
#endif
