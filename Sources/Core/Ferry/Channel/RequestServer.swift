import Synchronization

/// Reads incoming messages: passes answers to the waiting requests, and answers the peer's requests, each in its own
/// task.
final class RequestServer<Request: Sendable, Response: Sendable>: Sendable {
    /// A request that is being answered.
    private struct Served {
        let order: UInt64
        let task: Task<Void, Never>
    }

    private struct State {
        var served: [UInt64: Served] = [:]
        /// Counts requests that were served: a number may be used again once its request was cancelled.
        var nextOrder: UInt64 = 0
        /// Answers and refusals that are not out yet.
        var unsentReplies = 0
        /// Reading goes on when there are fewer.
        var reading: CheckedContinuation<Void, Never>?
    }

    /// The most replies that wait to be sent while requests are read.
    private var maximumUnsentReplies: Int { max(64, maximumServed) }

    private let channel: MessageChannel<RequestMessage, RequestMessage>
    private let book: RequestBook
    private let requests: any Codec<Request>
    private let responses: any Codec<Response>
    private let maximumServed: Int
    private let time: any TimeSource
    private let handler: (@Sendable (Request) async throws -> Response)?
    private let state = Mutex(State())

    init(
        channel: MessageChannel<RequestMessage, RequestMessage>, book: RequestBook, requests: any Codec<Request>,
        responses: any Codec<Response>, maximumServed: Int, time: any TimeSource,
        handler: (@Sendable (Request) async throws -> Response)?
    ) {
        self.channel = channel
        self.book = book
        self.requests = requests
        self.responses = responses
        self.maximumServed = maximumServed
        self.time = time
        self.handler = handler
    }

    var unsentReplies: Int { state.withLock { $0.unsentReplies } }

    func run() async {
        for await result in channel.results {
            // What cannot be read names no request; the one it was for ends by its deadline.
            guard case .success(let message) = result else { continue }
            switch message.kind {
            case .request:
                if let refusal = serve(message) {
                    reply(RequestMessage(kind: .failure, number: message.number, payload: Array(refusal.utf8)))
                }
                await repliesAreOut()
            case .response: book.settle(message.number, .success(message.payload))
            case .failure:
                let text = String(decoding: message.payload.prefix(1024), as: UTF8.self)
                book.settle(
                    message.number,
                    .failure(
                        FerryError(
                            .requestFailed, "The other side could not answer: \(text)", fate: .mayHaveArrived)))
            case .cancel: state.withLock { $0.served.removeValue(forKey: message.number) }?.task.cancel()
            }
        }
        book.end(channel.closeReason ?? FerryError(.closed, "The channel has ended."))
        for served in state.withLock({ state in Array(state.served.values) }) { served.task.cancel() }
    }

    /// Begins to answer a request, or returns why not.
    private func serve(_ message: RequestMessage) -> String? {
        state.withLock { state in
            let number = message.number
            guard handler != nil else { return "It takes no requests." }
            guard state.served[number] == nil else { return "Request \(number) is being answered already." }
            guard state.served.count < maximumServed else {
                return "\(state.served.count) requests are being answered already."
            }
            let order = state.nextOrder
            state.nextOrder += 1
            let task = time.startTask { [self] in
                let answer = await answer(to: message)
                if forget(number, order) { reply(answer) }
            }
            state.served[number] = Served(order: order, task: task)
            return nil
        }
    }

    /// Sends an answer or a refusal. Its end is not awaited, so it takes no task.
    private func reply(_ message: RequestMessage) {
        state.withLock { $0.unsentReplies += 1 }
        channel.post(message) { [self] in
            let reading = state.withLock { state in
                state.unsentReplies -= 1
                defer { state.reading = nil }
                return state.reading
            }
            reading?.resume()
        }
    }

    /// Waits while too many replies have not been sent: nothing more is read from a peer that asks and takes no replies. Each
    /// of them ends within its timeout.
    private func repliesAreOut() async {
        while state.withLock({ $0.unsentReplies >= maximumUnsentReplies }) {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    let goesOn = state.unsentReplies < maximumUnsentReplies
                    if !goesOn { state.reading = continuation }
                    return goesOn
                }
                if goesOn { continuation.resume() }
            }
        }
    }

    /// Forgets a request that has been answered. Returns whether it is still wanted.
    private func forget(_ number: UInt64, _ order: UInt64) -> Bool {
        state.withLock { state in
            guard state.served[number]?.order == order else { return false }
            state.served[number] = nil
            return true
        }
    }

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
