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
/// Each answer finds its request, in any order. A request that is cancelled or whose deadline passes cancels the task
/// that answers it. When the last reference is released, the channel closes.
public final class RequestChannel<Request: Sendable, Response: Sendable>: Sendable {
    /// Answers a request. What it throws is told to the peer as text.
    public typealias Handler = @Sendable (Request) async throws -> Response

    private let channel: MessageChannel<RequestMessage, RequestMessage>
    private let book = RequestBook()
    private let requests: any Codec<Request>
    private let responses: any Codec<Response>
    private let time: any TimeSource
    private let server: RequestServer<Request, Response>
    private let serving: Task<Void, Never>

    /// Opens a channel over a link without another owner, and activates the link.
    ///
    /// - Parameters:
    ///   - link: the link; the channel closes it in the end.
    ///   - requests: turns requests into bytes and back, on both sides.
    ///   - responses: the same for answers.
    ///   - framing: turns payloads into chunks and back. With the sequenced framing a short answer overtakes a long one.
    ///   - compression: makes payloads smaller, or nil.
    ///   - maximumServed: how many of the peer's requests are answered at once; further ones fail at once. At least 1. While 64
    ///     replies (or `maximumServed`, if that is more) wait to be sent, nothing is read: a peer that takes no replies is stopped.
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
        server = RequestServer(
            channel: channel, book: book, requests: requests, responses: responses,
            maximumServed: max(1, maximumServed), time: time, handler: handler)
        serving = time.startTask { [server] in await server.run() }
    }

    deinit { channel.close() }

    /// Sends a request and waits for its answer.
    ///
    /// Requests leave in the order in which the calls begin, as messages do
    /// (``MessageChannel/send(_:options:timeout:progress:)``). The peer answers several at once.
    ///
    /// - Parameters:
    ///   - request: the request to send.
    ///   - timeout: how long to wait for the answer, sending included.
    /// - Throws: `requestFailed` with what the other side's handler said, `timedOut`, `cancelled`, `encodingFailed`,
    ///   `decodingFailed`, or why the channel is closed; with a ``FerryError/fate`` of the request.
    public func request(_ request: Request, timeout: Duration = .seconds(30)) async throws(FerryError) -> Response {
        let number = book.begin()
        let place = channel.core.reserve()
        let payload = await encoded(request, number)
        let deadline = time.now + timeout
        do throws(FerryError) {
            try await channel.core.send(payload, in: place, timeout: timeout)
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

    /// Tells the peer to stop. Not awaited: the caller's task may be cancelled.
    private func cancel(_ number: UInt64) {
        channel.post(RequestMessage(kind: .cancel, number: number)) {}
    }

    /// Answers and refusals that are not out yet.
    var unsentReplies: Int { server.unsentReplies }

    /// Who is at the other end.
    public var peer: PeerIdentity { channel.peer }
    /// Why the channel is closed, or nil while it is open.
    public var closeReason: FerryError? { channel.closeReason }
    /// Waits until the channel has ended, and says why; nil when the task is cancelled before.
    public var closed: FerryError? { get async { await channel.closed } }
    /// Closes the channel and its link. Requests that wait fail, and tasks that answer are cancelled.
    public func close() { channel.close() }

    @concurrent private func encoded(_ request: Request, _ number: UInt64) async -> Result<[UInt8], FerryError> {
        do {
            let message = RequestMessage(kind: .request, number: number, payload: try requests.encode(request))
            return channel.payload(for: message)
        } catch {
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
final class RequestBook: Sendable {
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

    /// Completes a request. Only the first result counts, and answers without a request are ignored.
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

extension MessageChannel {
    /// Sends a message without a waiting caller, within 30 s, and calls `completion` at its end.
    func post(_ message: Outbound, completion: @escaping @Sendable () -> Void) {
        guard case .success(let payload) = payload(for: message) else { return completion() }
        core.submit(payload, as: core.makeID(), timeout: .seconds(30)) { _ in completion() }
    }
}
