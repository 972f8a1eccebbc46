#if NATS
    import CNATS
    import Ferry
    import Glibc
    import Synchronization

    /// Requests whose answers are waited for side by side, each with its deadline. libnats' own take a thread each until they
    /// are answered: one that a server leaves without an answer would hold up the requests behind it.
    final class NATSRequests: Sendable {
        private struct Waiting {
            let continuation: CheckedContinuation<Result<NATSMessage, FerryError>, Never>
            var timer: ScheduledTimer?
        }

        private struct State {
            var waiting: [UInt64: Waiting] = [:]
            var last: UInt64 = 0
            var inbox: NATSInbox?
        }

        private let state = Mutex(State())
        private let time = SystemTime()

        /// Sends a request, on the connection's own thread, and waits for its answer.
        ///
        /// - Parameter what: the attempt, as the beginning of an error's sentence.
        func ask(
            _ message: NATSMessage, over connection: NATSConnection, _ what: String
        ) async throws(FerryError) -> NATSMessage {
            let deadline = time.now + connection.configuration.requestTimeout
            let result = await withCheckedContinuation { continuation in
                let number = expect(continuation, until: deadline, what)
                connection.submit { [self] handle in
                    do throws(FerryError) {
                        guard let handle else { throw NATSConnection.closed }
                        // Its time may have passed while libnats connected.
                        guard isExpected(number) else { return }
                        let inbox = try openInbox(handle)
                        let made = try message.make(replyingTo: inbox.subject(number))
                        defer { natsMsg_Destroy(made) }
                        try require(natsConnection_PublishMsg(handle.connection, made), what)
                    } catch {
                        end(number, .failure(error))
                    }
                }
            }
            let answer = try result.get()
            // The server says that no responder listens.
            guard answer[NATSMessage.status] != "503" else { throw NATSFailure(NATS_NO_RESPONDERS).error(what) }
            return answer
        }

        /// Those that still wait end with this.
        func close() {
            let (waiting, inbox) = state.withLock { state in
                defer { state = State(last: state.last) }
                return (state.waiting.values, state.inbox)
            }
            for each in waiting {
                each.timer?.cancel()
                each.continuation.resume(returning: .failure(NATSConnection.closed))
            }
            inbox?.subscription.end()
        }

        private func expect(
            _ continuation: CheckedContinuation<Result<NATSMessage, FerryError>, Never>, until deadline: Timestamp,
            _ what: String
        ) -> UInt64 {
            let number = state.withLock { state in
                state.last += 1
                state.waiting[state.last] = Waiting(continuation: continuation)
                return state.last
            }
            let timer = time.schedule(at: deadline) { [weak self] in
                self?.end(number, .failure(NATSFailure(NATS_TIMEOUT).error(what)))
            }
            let isOver = state.withLock { state in
                state.waiting[number]?.timer = timer
                return state.waiting[number] == nil
            }
            if isOver { timer.cancel() }
            return number
        }

        private func isExpected(_ number: UInt64) -> Bool { state.withLock { $0.waiting[number] != nil } }

        private func end(_ number: UInt64, _ result: Result<NATSMessage, FerryError>) {
            guard let waiting = state.withLock({ $0.waiting.removeValue(forKey: number) }) else { return }
            waiting.timer?.cancel()
            waiting.continuation.resume(returning: result)
        }

        /// On the connection's thread: one at a time.
        private func openInbox(_ handle: NATSHandle) throws(FerryError) -> NATSInbox {
            if let inbox = state.withLock({ $0.inbox }) { return inbox }
            let inbox = try NATSInbox(handle) { [weak self] answers in
                for (number, message) in answers { self?.end(number, .success(NATSMessage(message))) }
            }
            state.withLock { $0.inbox = inbox }
            return inbox
        }
    }

    /// Where answers come to: the last word of their subject is the number of what they answer.
    struct NATSInbox: Sendable {
        private let prefix: String
        let subscription: NATSSubscription

        /// - Parameter hear: takes answers and their numbers, as ``NATSSubscription`` says.
        init(_ handle: NATSHandle, hear: @escaping @Sendable ([(UInt64, OpaquePointer)]) -> Void) throws(FerryError) {
            let what = "Answers cannot be listened for"
            var text: UnsafeMutablePointer<CChar>?
            try require(natsInbox_Create(&text), what)
            guard let text else { throw FerryError(.natsFailed, what) }
            defer { natsInbox_Destroy(text) }
            prefix = String(cString: text) + "."
            let count = prefix.utf8.count
            subscription = try NATSSubscription(handle, to: prefix + "*", what) { messages in
                hear(messages.compactMap { message in Self.number(message, after: count).map { ($0, message) } })
            }
        }

        /// The number in a message's subject after `count` bytes; a server may write anything.
        private static func number(_ message: OpaquePointer, after count: Int) -> UInt64? {
            guard let subject = natsMsg_GetSubject(message), strnlen(subject, count + 1) > count else { return nil }
            return UInt64(String(cString: subject + count))
        }

        /// The subject for the answer to the request with this number.
        func subject(_ number: UInt64) -> String { prefix + String(number) }
    }

    extension NATSMessage {
        /// The header by which libnats hands on a status that a server sent in place of an answer.
        static let status = "Status"
    }
#endif
