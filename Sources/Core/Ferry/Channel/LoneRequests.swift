import Synchronization

/// One request at a time over a channel whose answers do not say which request they are for: for clients of other people's formats.
///
/// The channel is closed when a request ends without its answer, by its time or as its task is cancelled: the late answer would be taken
/// for the next one's.
package final class LoneRequests<Answer: Sendable>: Sendable {
    private enum State {
        case idle
        case waits(AsyncStream<Answer>.Continuation)
        case ended
    }

    private let channel: MessageChannel<[UInt8], [UInt8]>
    private let time: any TimeSource
    private let state = Mutex(State.idle)

    /// - Parameters:
    ///   - channel: what requests go by. Tell what arrives by ``take(_:)``, and its end by ``end()``.
    ///   - time: the clock for timeouts.
    package init(over channel: MessageChannel<[UInt8], [UInt8]>, time: any TimeSource) {
        self.channel = channel
        self.time = time
    }

    /// Sends a request and waits for its answer.
    ///
    /// - Parameters:
    ///   - message: the request.
    ///   - limit: how long it may take in all.
    ///   - most: how many parts of an answer are kept for `read`.
    ///   - busy: the error for a request while another one is pending.
    ///   - words: the request in the middle of a sentence, with a space before it; empty for none.
    ///   - read: takes a part of the answer, and returns nil until it is whole.
    /// - Throws: `busy`, what `read` throws, `timedOut`, `cancelled`, or why the channel has ended.
    package func ask<Result>(
        _ message: [UInt8], within limit: Duration, most: Int = 1, busy: @autoclosure () -> FerryError,
        words: @autoclosure () -> String = "", _ read: (Answer) throws(FerryError) -> Result?
    ) async throws(FerryError) -> Result {
        let (answers, source) = AsyncStream<Answer>.makeStream(bufferingPolicy: .bufferingOldest(most))
        let refusal = state.withLock { state -> FerryError? in
            switch state {
            case .idle:
                state = .waits(source)
                return nil
            case .waits: return busy()
            case .ended: return channel.closeReason ?? FerryError(.closed, "The link has ended.", fate: .nothingSent)
            }
        }
        if let refusal { throw refusal }
        let isLate = Atomic(false)
        let deadline = time.schedule(at: time.now + limit) {
            isLate.store(true, ordering: .releasing)
            source.finish()
        }
        defer { deadline.cancel() }
        do throws(FerryError) { try await channel.send(message, timeout: limit) } catch {
            if error.fate == .mayHaveArrived { channel.close() } else { settle() }
            throw error
        }
        for await answer in answers {
            let result: Result?
            do throws(FerryError) { result = try read(answer) } catch {
                settle()
                throw error
            }
            if let result {
                settle()
                return result
            }
        }
        if let reason = channel.closeReason { throw reason }
        channel.close()
        if isLate.load(ordering: .acquiring) {
            throw FerryError(
                .timedOut, "The device has not answered\(words()) within \(limit). Connect again.",
                fate: .mayHaveArrived)
        }
        throw FerryError(
            .cancelled, "The task was cancelled while it waited for the device's answer.", fate: .mayHaveArrived)
    }

    private func settle() { state.withLock { if case .waits = $0 { $0 = .idle } } }

    /// A part of an answer; dropped where no request waits.
    package func take(_ answer: Answer) {
        let source = state.withLock { state -> AsyncStream<Answer>.Continuation? in
            if case .waits(let source) = state { source } else { nil }
        }
        source?.yield(answer)
    }

    /// The channel has ended, and a request that waits with it.
    package func end() {
        let source = state.withLock { state -> AsyncStream<Answer>.Continuation? in
            defer { state = .ended }
            return if case .waits(let source) = state { source } else { nil }
        }
        source?.finish()
    }
}
