import Synchronization

/// Requests and their answers over one link: several at once, in both directions, each with a deadline.
///
///     let sensor = try RequestChannel(over: link, requests: TextCodec(), responses: JSONCodec<Double>())
///     let celsius = try await sensor.request("temperature", timeout: .seconds(5))
///
/// and at the other end
///
///     let phone = try RequestChannel(over: link, requests: TextCodec(), responses: JSONCodec<Double>()) { question in
///         try await measure(question)
///     }
///
/// Each answer finds its request, whatever order they come in. A request that is cancelled or whose deadline passes cancels
/// the task that answers it. When the last reference goes, the channel is closed.
public final class RequestChannel<Request: Sendable, Response: Sendable>: Sendable {
    /// Answers a request. What it throws is told to the peer as text.
    public typealias Handler = @Sendable (Request) async throws -> Response

    private let channel: MessageChannel<RequestMessage, RequestMessage>
    private let book = RequestBook()
    private let requests: any Codec<Request>
    private let responses: any Codec<Response>
    private let time: any TimeSource
    private let serving: Task<Void, Never>

    /// Opens a channel over a link that nobody else uses, and activates the link.
    ///
    /// - Parameters:
    ///   - link: the link; the channel closes it in the end.
    ///   - requests: turns requests into bytes and back, on both sides.
    ///   - responses: the same for answers.
    ///   - framing: turns payloads into chunks and back. With the sequenced framing a short answer overtakes a long one.
    ///   - compression: makes payloads smaller, or nil.
    ///   - maximumServed: how many of the peer's requests are answered at once; further ones fail at once. At least 1.
    ///   - limits: what a peer can make grow, bounded.
    ///   - time: the clock for deadlines.
    ///   - handler: answers the peer's requests; nil to refuse them.
    /// - Throws: `invalidConfiguration` as ``MessageChannel``.
    public init(
        over link: any Link, requests: some Codec<Request>, responses: some Codec<Response>,
        framing: some Framing = LengthPrefixFraming(), compression: (any Compression)? = nil, maximumServed: Int = 16,
        limits: Limits = Limits(), time: any TimeSource = SystemTime(), answering handler: Handler? = nil
    ) throws(FerryError) {
        let codec = RequestMessageCodec(identifier: requests.identifier)
        channel = try MessageChannel(
            over: link, codec: codec, framing: framing, compression: compression, limits: limits, time: time)
        self.requests = requests
        self.responses = responses
        self.time = time
        let server = RequestServer(
            channel: channel, book: book, requests: requests, responses: responses,
            maximumServed: max(1, maximumServed), handler: handler)
        serving = Task { await server.run() }
    }

    deinit { channel.close() }

    /// Sends a request and waits for its answer.
    ///
    /// - Parameters:
    ///   - request: what is asked for.
    ///   - timeout: how long to wait for the answer, sending included.
    /// - Throws: `requestFailed` with what the other side's handler said, `timedOut`, `cancelled`, `encodingFailed`,
    ///   `decodingFailed`, or why the channel is closed; with a ``FerryError/fate`` of the request.
    public func request(_ request: Request, timeout: Duration = .seconds(30)) async throws(FerryError) -> Response {
        let payload = try await encoded(request).get()
        let number = book.begin()
        let deadline = time.now + timeout
        do throws(FerryError) {
            let message = RequestMessage(kind: .request, number: number, payload: payload)
            try await channel.send(message, timeout: timeout)
        } catch {
            book.forget(number)
            if error.fate == .mayHaveArrived { cancel(number) }
            throw error
        }
        let timer = time.schedule(at: deadline) { [book] in
            book.settle(
                number,
                .failure(
                    FerryError(
                        .timedOut, "The request was sent and not answered within \(timeout).", fate: .mayHaveArrived)))
        }
        let outcome = await book.outcome(of: number)
        timer.cancel()
        switch outcome {
        case .success(let payload): return try await decoded(payload).get()
        case .failure(let error):
            if error.code == .cancelled || error.code == .timedOut { cancel(number) }
            throw error
        }
    }

    /// Tells the peer that it need not go on. In a task of its own, for this one may be cancelled.
    private func cancel(_ number: UInt64) {
        Task { [channel] in
            try? await channel.send(RequestMessage(kind: .cancel, number: number), timeout: .seconds(30))
        }
    }

    /// Who is at the other end.
    public var peer: PeerIdentity { channel.peer }
    /// Why the channel is closed, or nil while it is open.
    public var closeReason: FerryError? { channel.closeReason }
    /// Waits until the channel has ended, and says why; nil when the task is cancelled before.
    public var closed: FerryError? { get async { await channel.closed } }
    /// Closes the channel and its link. Requests that wait fail, and tasks that answer are cancelled.
    public func close() { channel.close() }

    @concurrent private func encoded(_ request: Request) async -> Result<[UInt8], FerryError> {
        do { return .success(try requests.encode(request)) } catch {
            return .failure(
                FerryError(
                    .encodingFailed, "\(type(of: requests)) cannot encode the request.", cause: error,
                    fate: .nothingSent))
        }
    }

    @concurrent private func decoded(_ payload: [UInt8]) async -> Result<Response, FerryError> {
        do { return .success(try responses.decode(payload)) } catch {
            return .failure(
                FerryError(
                    .decodingFailed, "\(type(of: responses)) cannot decode an answer of \(payload.count) bytes.",
                    cause: error, fate: .mayHaveArrived))
        }
    }
}

/// The requests of this side that wait for an answer.
private final class RequestBook: Sendable {
    private enum Entry {
        case open
        case waiting(CheckedContinuation<Result<[UInt8], FerryError>, Never>)
        case settled(Result<[UInt8], FerryError>)
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var next: UInt64 = 0
        var ending: FerryError?
    }

    private let state = Mutex(State())

    func begin() -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.entries[state.next] = state.ending.map { .settled(.failure($0)) } ?? .open
            return state.next
        }
    }

    /// What has become of a request; only the first counts, and what nobody asked for is passed over.
    func settle(_ number: UInt64, _ result: Result<[UInt8], FerryError>) {
        let waiting = state.withLock { state -> CheckedContinuation<Result<[UInt8], FerryError>, Never>? in
            switch state.entries[number] {
            case nil, .settled?: return nil
            case .open?:
                state.entries[number] = .settled(result)
                return nil
            case .waiting(let continuation)?:
                state.entries[number] = nil
                return continuation
            }
        }
        waiting?.resume(returning: result)
    }

    /// The request has not left.
    func forget(_ number: UInt64) { state.withLock { $0.entries[number] = nil } }

    /// Waits for what becomes of a request, which is forgotten then.
    func outcome(of number: UInt64) async -> Result<[UInt8], FerryError> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let settled = state.withLock { state -> Result<[UInt8], FerryError>? in
                    if case .settled(let result)? = state.entries[number] {
                        state.entries[number] = nil
                        return result
                    }
                    state.entries[number] = .waiting(continuation)
                    return nil
                }
                if let settled { continuation.resume(returning: settled) }
                if Task.isCancelled { settle(number, .failure(Self.cancelled)) }
            }
        } onCancel: {
            settle(number, .failure(Self.cancelled))
        }
    }

    private static var cancelled: FerryError {
        FerryError(.cancelled, "The task was cancelled while it waited for the answer.", fate: .mayHaveArrived)
    }

    /// The channel has ended: no answer comes any more.
    func end(_ reason: FerryError) {
        let error = FerryError(
            reason.code, "The channel ended before the answer came.", cause: reason, fate: .mayHaveArrived)
        let numbers = state.withLock { state in
            state.ending = error
            return Array(state.entries.keys)
        }
        for number in numbers { settle(number, .failure(error)) }
    }
}

/// Reads what arrives: hands answers to those who wait, and answers the peer's requests, each in a task of its own.
private final class RequestServer<Request: Sendable, Response: Sendable>: Sendable {
    private let channel: MessageChannel<RequestMessage, RequestMessage>
    private let book: RequestBook
    private let requests: any Codec<Request>
    private let responses: any Codec<Response>
    private let maximumServed: Int
    private let handler: (@Sendable (Request) async throws -> Response)?
    private let served = Mutex<[UInt64: Task<Void, Never>]>([:])

    init(
        channel: MessageChannel<RequestMessage, RequestMessage>, book: RequestBook, requests: any Codec<Request>,
        responses: any Codec<Response>, maximumServed: Int, handler: (@Sendable (Request) async throws -> Response)?
    ) {
        self.channel = channel
        self.book = book
        self.requests = requests
        self.responses = responses
        self.maximumServed = maximumServed
        self.handler = handler
    }

    func run() async {
        for await result in channel.results {
            // What cannot be read names no request; the one it was for ends by its deadline.
            guard case .success(let message) = result else { continue }
            switch message.kind {
            case .request: serve(message)
            case .response: book.settle(message.number, .success(message.payload))
            case .failure:
                let text = String(decoding: message.payload.prefix(1024), as: UTF8.self)
                book.settle(
                    message.number,
                    .failure(
                        FerryError(
                            .requestFailed, "The other side could not answer: \(text)", fate: .mayHaveArrived)))
            case .cancel: served.withLock { $0.removeValue(forKey: message.number) }?.cancel()
            }
        }
        book.end(channel.closeReason ?? FerryError(.closed, "The channel has ended."))
        for task in served.withLock({ tasks in Array(tasks.values) }) { task.cancel() }
    }

    private func serve(_ message: RequestMessage) {
        let refusal: String? = served.withLock { served in
            guard handler != nil else { return "It takes no requests." }
            guard served[message.number] == nil else { return "Request \(message.number) is being answered already." }
            guard served.count < maximumServed else { return "\(served.count) requests are being answered already." }
            served[message.number] = Task { [self] in
                let answer = await answer(to: message)
                let isWanted = forget(message.number)
                if isWanted { try? await channel.send(answer, timeout: .seconds(30)) }
            }
            return nil
        }
        guard let refusal else { return }
        Task { [channel] in
            try? await channel.send(
                RequestMessage(kind: .failure, number: message.number, payload: Array(refusal.utf8)),
                timeout: .seconds(30))
        }
    }

    /// Forgets a request that has been answered. Returns whether it is still wanted.
    private func forget(_ number: UInt64) -> Bool { served.withLock { $0.removeValue(forKey: number) != nil } }

    private func answer(to message: RequestMessage) async -> RequestMessage {
        do {
            guard let handler else { throw CancellationError() }
            let response = try await handler(try requests.decode(message.payload))
            return RequestMessage(
                kind: .response, number: message.number, payload: try responses.encode(response))
        } catch {
            return RequestMessage(
                kind: .failure, number: message.number, payload: Array("\(error)".utf8.prefix(1024)))
        }
    }
}
