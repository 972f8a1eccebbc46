#if NATS
    import CNATS
    import Dispatch
    public import Ferry
    import Glibc
    import Synchronization

    /// A connection to a NATS server or cluster, which connects again by itself when it is lost.
    ///
    ///     let connection = try await NATSConnection.connect(NATSConfiguration(servers: ["nats://localhost:4222"]))
    ///     let publisher = try await NATSPublisher(connection, to: "ferry")
    ///
    /// Calls that wait for the server do so on threads of the connection's own, each with a deadline.
    public final class NATSConnection: Sendable {
        /// What becomes of a connection.
        public enum Event: Sendable, Hashable {
            /// It is lost; it is being set up again.
            case disconnected
            /// It is there again, to the server of this ``NATSConnection/serverID()``.
            case reconnected(server: String)
            /// It has ended for good, as when credentials are refused twice.
            case closed(reason: String)
        }

        /// How it was made.
        public let configuration: NATSConfiguration
        let requests = DispatchQueue(label: "ferry.nats.requests")
        let publishing = DispatchQueue(label: "ferry.nats.publishing")
        private let handle: Mutex<NATSHandle?>
        private let news: NATSNews
        private let answers = NATSRequests()

        private init(_ configuration: NATSConfiguration, _ handle: NATSHandle, _ news: NATSNews) {
            self.configuration = configuration
            self.handle = Mutex(handle)
            self.news = news
        }

        /// Connects.
        ///
        /// - Throws: `natsNoServer`, `natsRefused`, `natsInsecure`, `timedOut`, `invalidConfiguration`.
        public static func connect(_ configuration: NATSConfiguration) async throws(FerryError) -> NATSConnection {
            try configuration.check()
            let news = NATSNews()
            let result = await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(
                        returning: Result { () throws(FerryError) in try NATSHandle(configuration, news) })
                }
            }
            return NATSConnection(configuration, try result.get(), news)
        }

        /// Connects, does something, and closes the connection, however that ended.
        ///
        /// - Throws: what ``connect(_:)`` does, and what `body` does.
        public static func with<Value>(
            _ configuration: NATSConfiguration, _ body: (NATSConnection) async throws(FerryError) -> Value
        ) async throws(FerryError) -> Value {
            let connection = try await connect(configuration)
            let result: Result<Value, FerryError>
            do throws(FerryError) { result = .success(try await body(connection)) } catch { result = .failure(error) }
            await connection.close()
            return try result.get()
        }

        /// The server's own identifier, which it draws anew at each start (`server_id` in its INFO); empty while there is none.
        ///
        /// It waits while libnats connects, which may be as long as ``NATSConfiguration/connectTimeout``.
        public func serverID() async -> String { (try? await perform { handle in handle.serverID }) ?? "" }

        /// Whether there is a connection now, as far as libnats has said. It never waits: libnats itself holds its lock while it
        /// connects and writes, and would block the caller.
        public var isConnected: Bool { news.isConnected }

        /// The largest message that the server takes, headers included, in bytes; of the server that was connected to first.
        public var maximumPayload: Int { handle.withLock { $0 }?.maximumPayload ?? 0 }

        /// What becomes of the connection from here on; the last 64 events, where they are not taken. It ends with the connection.
        public func events() -> AsyncStream<Event> { news.stream() }

        /// Ends the connection. Later calls throw `closed`.
        public func close() async {
            guard
                let old = handle.withLock({ handle in
                    defer { handle = nil }
                    return handle
                })
            else { return }
            news.finish(.closed(reason: "This side closed the connection."))
            await withCheckedContinuation { continuation in
                // Publishing is over when its queue has come here.
                publishing.async { [requests, answers] in
                    answers.close()
                    requests.async {
                        old.close()
                        continuation.resume()
                    }
                }
            }
        }

        deinit {
            news.finish(.closed(reason: "The connection is no longer used."))
            answers.close()
            handle.withLock { $0 }?.close()
        }

        /// Publishes a message without asking what becomes of it: who does not listen does not get it.
        ///
        /// - Throws: `closed`, `messageTooLarge`, `invalidConfiguration` for a subject that is none, `natsFailed`.
        public func publish(_ message: NATSMessage) async throws(FerryError) {
            try await perform(on: publishing) { handle throws(FerryError) in
                let made = try message.make()
                defer { natsMsg_Destroy(made) }
                try require(
                    natsConnection_PublishMsg(handle.connection, made), "A message to \(message.subject) cannot be sent"
                )
            }
        }

        /// Sends a request, and waits for its answer, as long as ``NATSConfiguration/requestTimeout``. None waits for another's.
        ///
        /// - Parameter what: the attempt, as the beginning of an error's sentence.
        /// - Throws: `timedOut`, `natsNotReady` where no responder is there, `closed`, `messageTooLarge`, `invalidConfiguration`,
        ///   `natsNoServer`, `natsFailed`.
        func request(_ message: NATSMessage, _ what: String) async throws(FerryError) -> NATSMessage {
            try await answers.ask(message, over: self, what)
        }

        /// Messages to a subject, which may have wildcards, from here on, until the task that reads is cancelled. Of those that
        /// are not read in time the last 1 024 are kept.
        ///
        /// - Throws: `closed`, `invalidConfiguration`, `natsFailed`.
        public func messages(to subject: String) async throws(FerryError) -> AsyncStream<NATSMessage> {
            let (stream, continuation) = AsyncStream<NATSMessage>.makeStream(bufferingPolicy: .bufferingNewest(1024))
            let subscription = try await perform { handle throws(FerryError) in
                try NATSSubscription(handle, to: subject, "Subject \(subject) cannot be listened to") {
                    for message in $0 { continuation.yield(NATSMessage(message)) }
                }
            }
            continuation.onTermination = { _ in subscription.end() }
            return stream
        }

        /// Waits until everything sent before has reached the server.
        ///
        /// - Throws: `timedOut`, `closed`, `natsNoServer`.
        public func flush() async throws(FerryError) {
            let timeout = configuration.requestTimeout.milliseconds
            try await perform { handle throws(FerryError) in
                try require(natsConnection_FlushTimeout(handle.connection, timeout), "The server does not answer")
            }
        }

        /// Does something that may wait, on a thread of the connection's.
        func perform<Value: Sendable>(
            on queue: DispatchQueue? = nil,
            _ body: @escaping @Sendable (NATSHandle) throws(FerryError) -> Value
        ) async throws(FerryError) -> Value {
            let result = await withCheckedContinuation {
                (continuation: CheckedContinuation<Result<Value, FerryError>, Never>) in
                (queue ?? requests).async { [self] in
                    guard let handle = handle.withLock({ $0 }) else {
                        return continuation.resume(returning: .failure(Self.closed))
                    }
                    continuation.resume(returning: Result { () throws(FerryError) in try body(handle) })
                }
            }
            return try result.get()
        }

        /// The same, without waiting; nil when the connection is closed.
        func submit(_ body: @escaping @Sendable (NATSHandle?) -> Void) {
            publishing.async { [self] in body(handle.withLock { $0 }) }
        }

        static var closed: FerryError { FerryError(.closed, "The connection to NATS was closed. Connect again.") }
    }

    /// libnats' connection and JetStream context. The library counts references, and may be called from any thread.
    final class NATSHandle: @unchecked Sendable {
        let connection: OpaquePointer
        let jetStream: OpaquePointer
        /// How long an answer may take, in milliseconds.
        let wait: Int64
        let maximumPayload: Int
        private let closure: UnsafeMutableRawPointer?

        init(_ configuration: NATSConfiguration, _ news: NATSNews) throws(FerryError) {
            closure = Registry.add(news)
            wait = configuration.requestTimeout.milliseconds
            do {
                connection = try Self.connect(configuration, closure)
            } catch {
                Registry.remove(closure)
                throw error
            }
            var context: OpaquePointer?
            var options = jsOptions()
            jsOptions_Init(&options)
            options.Wait = wait
            let status = natsConnection_JetStream(&context, connection, &options)
            guard status == NATS_OK, let context else {
                natsConnection_Destroy(connection)
                Registry.remove(closure)
                throw NATSFailure(status).error("JetStream cannot be used")
            }
            jetStream = context
            maximumPayload = Int(clamping: natsConnection_GetMaxPayload(connection))
        }

        private static func connect(
            _ configuration: NATSConfiguration, _ closure: UnsafeMutableRawPointer?
        ) throws(FerryError) -> OpaquePointer {
            let what = "NATS at \(configuration.publicServers) cannot be connected to"
            var made: OpaquePointer?
            try require(natsOptions_Create(&made), what)
            guard let options = made else { throw FerryError(.natsFailed, what) }
            defer { natsOptions_Destroy(options) }
            var servers: [UnsafePointer<CChar>?] = configuration.servers.map { UnsafePointer(strdup($0)) }
            defer { for server in servers { free(UnsafeMutablePointer(mutating: server)) } }
            try require(natsOptions_SetServers(options, &servers, Int32(servers.count)), what)
            try require(natsOptions_SetName(options, configuration.name), what)
            try require(natsOptions_SetTimeout(options, configuration.connectTimeout.milliseconds), what)
            try require(natsOptions_SetPingInterval(options, configuration.pingInterval.milliseconds), what)
            try require(natsOptions_SetMaxPingsOut(options, 1), what)
            try require(natsOptions_SetMaxReconnect(options, -1), what)
            try require(natsOptions_SetReconnectWait(options, configuration.reconnectDelay.milliseconds), what)
            try require(natsOptions_SetWriteDeadline(options, configuration.requestTimeout.milliseconds), what)
            if let file = configuration.credentialsFile {
                try require(
                    natsOptions_SetUserCredentialsFromFiles(options, file, nil),
                    "The credentials file \(file) cannot be used")
            }
            if configuration.servers.contains(where: { $0.hasPrefix("tls://") }) { try secure(options) }
            if let file = configuration.authoritiesFile {
                try secure(options)
                try require(
                    natsOptions_LoadCATrustedCertificates(options, file), "The authorities' file \(file) cannot be used"
                )
            }
            if let file = configuration.certificateFile, let key = configuration.keyFile {
                try secure(options)
                try require(
                    natsOptions_LoadCertificatesChain(options, file, key),
                    "The certificate \(file) with the key \(key) cannot be used")
            }
            // Called on a thread of the library's: they hand on and return.
            try require(
                natsOptions_SetDisconnectedCB(
                    options,
                    { _, closure in Registry.find(closure, NATSNews.self)?.tell(.disconnected) }, closure), what)
            try require(
                natsOptions_SetReconnectedCB(
                    options,
                    { connection, closure in
                        let server = NATSHandle.serverID(connection)
                        Registry.find(closure, NATSNews.self)?.tell(.reconnected(server: server))
                    }, closure), what)
            try require(
                natsOptions_SetClosedCB(
                    options,
                    { connection, closure in
                        var words: UnsafePointer<CChar>?
                        _ = natsConnection_GetLastError(connection, &words)
                        let reason = words.map { String(cString: $0) } ?? ""
                        Registry.find(closure, NATSNews.self)?.finish(.closed(reason: reason))
                    }, closure), what)
            // Errors of the connection come by the callbacks above; without a handler the library prints them.
            try require(natsOptions_SetErrorHandler(options, { _, _, _, _ in }, nil), what)
            var connection: OpaquePointer?
            try require(natsConnection_Connect(&connection, options), what)
            guard let connection else { throw FerryError(.natsFailed, what) }
            return connection
        }

        private static func secure(_ options: OpaquePointer) throws(FerryError) {
            try require(natsOptions_SetSecure(options, true), "TLS cannot be used")
        }

        var serverID: String { Self.serverID(connection) }

        static func serverID(_ connection: OpaquePointer?) -> String {
            var buffer = [CChar](repeating: 0, count: 256)
            guard natsConnection_GetConnectedServerId(connection, &buffer, buffer.count) == NATS_OK else { return "" }
            return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        func close() {
            natsConnection_Close(connection)
            Registry.remove(closure)
        }

        deinit {
            jsCtx_Destroy(jetStream)
            natsConnection_Destroy(connection)
            Registry.remove(closure)
        }
    }

    /// Who wants to hear what becomes of a connection.
    final class NATSNews: Sendable {
        private struct State {
            var listeners: [Int: AsyncStream<NATSConnection.Event>.Continuation] = [:]
            var next = 0
            var phase = Phase.connected
        }

        private enum Phase {
            case connected
            /// It tries again by itself.
            case away
            case ended(NATSConnection.Event)
        }

        private let state = Mutex(State())

        var isConnected: Bool { state.withLock { if case .connected = $0.phase { true } else { false } } }

        func stream() -> AsyncStream<NATSConnection.Event> {
            let (stream, continuation) = AsyncStream<NATSConnection.Event>.makeStream(
                bufferingPolicy: .bufferingNewest(64))
            let (number, end) = state.withLock { state -> (Int, NATSConnection.Event?) in
                state.next += 1
                if case .ended(let event) = state.phase { return (state.next, event) }
                state.listeners[state.next] = continuation
                return (state.next, nil)
            }
            if let end {
                continuation.yield(end)
                continuation.finish()
            } else {
                continuation.onTermination = { [weak self] _ in
                    _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
                }
            }
            return stream
        }

        func tell(_ event: NATSConnection.Event) {
            let listeners = state.withLock { state in
                switch (state.phase, event) {
                case (.ended, _): break
                case (_, .disconnected), (_, .closed): state.phase = .away
                case (_, .reconnected): state.phase = .connected
                }
                return Array(state.listeners.values)
            }
            for listener in listeners { listener.yield(event) }
        }

        func finish(_ event: NATSConnection.Event) {
            let listeners = state.withLock { state in
                if case .ended = state.phase {} else { state.phase = .ended(event) }
                defer { state.listeners = [:] }
                return Array(state.listeners.values)
            }
            for listener in listeners {
                listener.yield(event)
                listener.finish()
            }
        }
    }
#endif
