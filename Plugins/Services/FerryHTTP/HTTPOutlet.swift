#if HTTP
    import AsyncHTTPClient
    public import Ferry
    public import FerryFleet
    import Foundation
    import NIOCore
    import NIOHTTP1
    import NIOPosix
    import NIOSSL
    import Synchronization

    /// The outlet to an HTTP server: records as CloudEvents in JSON, in batches (CloudEvents 1.0.2, HTTP Protocol Binding, 3.3).
    ///
    /// An event's `source` is the lane, `ferry/records/SENDER/STREAM`, and its `id` the record's key; consumers know doubles by both.
    /// Any status of 200 to 299 says that the server has stored all events of the request. After a refusal of several events (400, 413,
    /// 422 and the other statuses of 400 to 499 that are about them) they are sent in halves, until the refused one is alone.
    public final class HTTPOutlet: Outlet {
        private struct State {
            var batches: HTTPBatches
            var nextToken: UInt64 = 0
            var waiting: [UInt64: CheckedContinuation<OutletAnswer, Never>] = [:]
            var running: [UInt64: Task<Void, Never>] = [:]
        }

        private let configuration: HTTPConfiguration
        private let authorization: String?
        private let event: CloudEvent
        private let client: HTTPClient
        private let time: any TimeSource
        private let state: Mutex<State>

        private init(_ configuration: HTTPConfiguration, time: any TimeSource) throws(FerryError) {
            try configuration.check()
            self.configuration = configuration
            self.time = time
            authorization = try configuration.authorization()
            event = CloudEvent(contentType: configuration.contentType, eventType: configuration.eventType)
            state = Mutex(State(batches: HTTPBatches(configuration)))
            var options = HTTPClient.Configuration()
            options.redirectConfiguration = .disallow
            options.tlsConfiguration = try configuration.security()
            // The caller repeats, by the pauses of `HTTPBatches`.
            options.connectionPool.retryConnectionEstablishment = false
            client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: options)
        }

        deinit {
            let client = client
            Task { try? await client.shutdown() }
        }

        /// Looks whether a server answers, by the method OPTIONS, which changes nothing.
        ///
        /// - Parameters:
        ///   - configuration: the server, and what it is sent.
        ///   - time: the clock.
        /// - Throws: `httpNoServer`, `httpRefused`, `httpInsecure`, `httpFailed`, `timedOut`, `invalidConfiguration`.
        public static func open(
            _ configuration: HTTPConfiguration, time: any TimeSource = SystemTime()
        ) async throws(FerryError) -> HTTPOutlet {
            let outlet = try HTTPOutlet(configuration, time: time)
            let reply = await outlet.send("OPTIONS", nil, before: time.now + configuration.timeout)
            let failure: FerryError
            switch reply {
            case .status(401, _, _), .status(403, _, _):
                failure = FerryError(
                    .httpRefused,
                    "The server at \(configuration.publicAddress) refuses this client. Look at the user, the token or the certificate."
                )
            case .status: return outlet
            case .gone(let error), .unanswered(let error): failure = error
            }
            await outlet.close()
            throw failure
        }

        /// Publishes a message, and waits for the server's answer.
        public func publish(_ message: OutletMessage) async -> OutletAnswer {
            let bytes = event.bytes(message)
            return await withCheckedContinuation { continuation in
                let (answer, requests) = state.withLock { state -> (OutletAnswer?, [HTTPBatches.Request]) in
                    state.nextToken += 1
                    if let answer = state.batches.add(state.nextToken, bytes, at: time.now) { return (answer, []) }
                    state.waiting[state.nextToken] = continuation
                    return (nil, Self.requests(&state))
                }
                if let answer { continuation.resume(returning: answer) }
                begin(requests)
            }
        }

        /// Ends the connections. Messages on their way are answered with `unanswered`: the server may have them.
        public func close() async {
            let (answers, running) = state.withLock { state in
                (Self.taking(state.batches.close(), from: &state), Array(state.running.values))
            }
            for (continuation, answer) in answers { continuation.resume(returning: answer) }
            for task in running { task.cancel() }
            for task in running { await task.value }
            // Throws when it was shut down already.
            try? await client.shutdown()
        }

        // MARK: Requests

        private static func requests(_ state: inout State) -> [HTTPBatches.Request] {
            var requests: [HTTPBatches.Request] = []
            while let request = state.batches.next() { requests.append(request) }
            return requests
        }

        private static func taking(
            _ answers: HTTPBatches.Answers, from state: inout State
        ) -> [(CheckedContinuation<OutletAnswer, Never>, OutletAnswer)] {
            answers.compactMap { token, answer in state.waiting.removeValue(forKey: token).map { ($0, answer) } }
        }

        private func begin(_ requests: [HTTPBatches.Request]) {
            for request in requests {
                // Under the lock, so that it is noted before it can end.
                state.withLock { state in
                    state.running[request.number] = Task { [self] in await carry(request) }
                }
            }
        }

        private func carry(_ request: HTTPBatches.Request) async {
            let reply = await send("POST", CloudEvent.batch(request.events.map(\.bytes)), before: request.deadline)
            let (answers, requests) = state.withLock { state in
                state.running[request.number] = nil
                let answers = state.batches.ended(request.number, reply, at: time.now)
                return (Self.taking(answers, from: &state), Self.requests(&state))
            }
            for (continuation, answer) in answers { continuation.resume(returning: answer) }
            begin(requests)
        }

        /// - Parameter body: events; none for a look.
        private func send(_ method: String, _ body: [UInt8]?, before deadline: Timestamp) async -> HTTPBatches.Reply {
            var request = HTTPClientRequest(url: configuration.url)
            request.method = .RAW(value: method)
            request.headers.add(name: "User-Agent", value: "ferry")
            if let authorization { request.headers.add(name: "Authorization", value: authorization) }
            if let body {
                request.headers.add(name: "Content-Type", value: CloudEvent.batchType)
                request.body = .bytes(body)
            }
            let task = Task { [client, request] in await Self.execute(request, client) }
            let timer = time.schedule(at: deadline) { task.cancel() }
            let outcome = await withTaskCancellationHandler {
                await task.value
            } onCancel: {
                task.cancel()
            }
            timer.cancel()
            return switch outcome {
            case .success(let reply): reply
            case .failure(let error): failure(error, isOver: time.now >= deadline)
            }
        }

        /// How much of a refusal is read and told.
        private static let longestText = 200

        private static func execute(
            _ request: HTTPClientRequest, _ client: HTTPClient
        ) async -> Result<HTTPBatches.Reply, any Error> {
            do {
                let response = try await client.execute(request, deadline: .distantFuture)
                // The status is the answer, even where the body cannot be read.
                let body = (try? await response.body.collect(upTo: 1 << 16)).map { String(buffer: $0) } ?? ""
                let text = body.prefix(longestText).split(whereSeparator: \.isWhitespace).joined(separator: " ")
                let seconds = response.headers.first(name: "Retry-After").flatMap(Int64.init).map(Duration.seconds)
                return .success(.status(Int(response.status.code), text: text, retryAfter: seconds))
            } catch { return .failure(error) }
        }

        /// Whether nothing can have been sent.
        private static func isWithoutConnection(_ error: any Error) -> Bool {
            error is NIOConnectionError || (error as? IOError)?.errnoCode == ECONNREFUSED
                || (error as? HTTPClientError) == .connectTimeout
        }

        private func failure(_ error: any Error, isOver: Bool) -> HTTPBatches.Reply {
            let address = configuration.publicAddress
            switch error {
            case _ where Self.isWithoutConnection(error):
                return .gone(
                    FerryError(
                        .httpNoServer,
                        "The HTTP server at \(address) cannot be connected to. Start it, or name another."))
            case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError:
                return .gone(
                    FerryError(
                        .httpInsecure,
                        "TLS with the HTTP server at \(address) failed: \(error). Look at the authorities and certificates."
                    ))
            case _ where isOver:
                return .unanswered(
                    FerryError(
                        .timedOut, "The HTTP server at \(address) did not answer in time. It is tried again."))
            default:
                return .unanswered(
                    FerryError(
                        .httpFailed,
                        "The HTTP server at \(address) cannot be reached, or ended the connection: \(error). It is tried again."
                    ))
            }
        }
    }

    extension HTTPConfiguration {
        func security() throws(FerryError) -> TLSConfiguration {
            var security = TLSConfiguration.makeClientConfiguration()
            func read<Value>(_ path: String, _ body: () throws -> Value) throws(FerryError) -> Value {
                do { return try body() } catch {
                    throw FerryError(
                        .invalidConfiguration, "\(path) is no PEM file with what it should have, or cannot be read.")
                }
            }
            if let authoritiesFile {
                security.trustRoots = .certificates(
                    try read(authoritiesFile) { try NIOSSLCertificate.fromPEMFile(authoritiesFile) })
            }
            if let certificateFile, let keyFile {
                security.certificateChain = try read(certificateFile) {
                    try NIOSSLCertificate.fromPEMFile(certificateFile).map { .certificate($0) }
                }
                security.privateKey = try read(keyFile) {
                    .privateKey(try NIOSSLPrivateKey(file: keyFile, format: .pem))
                }
            }
            return security
        }
    }
#endif
