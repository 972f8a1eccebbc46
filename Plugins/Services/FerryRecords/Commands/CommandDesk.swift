#if Records
    public import Ferry

    /// Runs the commands that arrive in a store's inbox, and answers each of them once.
    ///
    ///     let desk = CommandDesk(store, ["restart": .once { _ in Array("restarting".utf8) }])
    ///     for try await record in store.inbox {
    ///         if try await desk.take(record) { continue }
    ///         // A record of the app's own.
    ///         try await record.done()
    ///     }
    ///
    /// The answer and the command's leaving the inbox are one transaction, so that a command has one answer even when the peer is killed.
    public struct CommandDesk: Sendable {
        /// Finds the handler of a command; nil where there is none of that name.
        public typealias Lookup = @Sendable (_ name: String) -> CommandHandler?

        /// The longest text of an answer that is none of a handler's, in bytes.
        private static let longestText = 1000

        private let store: RecordStore
        private let find: Lookup

        /// A desk with these handlers.
        ///
        /// - Parameters:
        ///   - store: whose inbox the commands arrive in.
        ///   - handlers: by the commands' names.
        public init(_ store: RecordStore, _ handlers: [String: CommandHandler]) {
            self.init(store) { handlers[$0] }
        }

        /// A desk that looks its handlers up.
        ///
        /// - Parameters:
        ///   - store: whose inbox the commands arrive in.
        ///   - find: finds the handler of a command.
        public init(_ store: RecordStore, finding find: @escaping Lookup) {
            self.store = store
            self.find = find
        }

        /// Whether a record is a command, by its stream.
        public static func isCommand(_ record: ArrivedRecord) -> Bool {
            (record.origin?.stream ?? record.id.stream) == RemoteCommand.stream
        }

        /// Runs a record that is a command, and answers. It returns when the answer is in the outbox: waiting for room there, too.
        ///
        /// One that cannot be read is taken out of the inbox, with a notice (``RecordStore/notices(after:)``).
        ///
        /// - Parameter record: from the store's inbox.
        /// - Returns: whether the record was a command; another one is untouched.
        /// - Throws: `cancelled` when the task was cancelled meanwhile; `closed`, `diskFull`, `storeFailed`. The command stays in the
        ///   inbox then.
        public func take(_ record: ArrivedRecord) async throws(FerryError) -> Bool {
            guard Self.isCommand(record) else { return false }
            let command: RemoteCommand
            do throws(FerryError) { command = try RemoteCommand(decoding: record.bytes) } catch {
                try await store.discard(record, notice: "A command was dropped unread. \(error.message)")
                return true
            }
            let handler = find(command.name)
            switch (try await store.admit(command, handler?.mode), handler) {
            case (.run, let handler?):
                let (outcome, body) = try await run(command, handler)
                try await answer(record, command, outcome, body)
            case (.answer(let outcome), _):
                try await answer(record, command, outcome, Array(Self.text(outcome, command).utf8))
            // It has its answer. Without a handler there is nothing to run.
            case (.drop, _), (.run, nil): try await store.discard(record)
            }
            return true
        }

        private func answer(
            _ record: ArrivedRecord, _ command: RemoteCommand, _ outcome: CommandAnswer.Outcome, _ body: [UInt8]
        ) async throws(FerryError) {
            let answer = CommandAnswer(command.id, outcome, time: store.milliseconds, body)
            do throws(FerryError) { try await store.reply(to: record, command, with: answer) } catch {
                guard error.code == .messageTooLarge else { throw error }
                let text = "It was done, but its answer of \(body.count) bytes is too large. \(error.message)"
                let short = CommandAnswer(command.id, .failed, time: store.milliseconds, Self.cut(text))
                try await store.reply(to: record, command, with: short)
            }
        }

        private enum Race: Sendable {
            case ended(Result<[UInt8], any Error>)
            case late
        }

        /// Runs a handler, until the command's deadline.
        ///
        /// - Throws: `cancelled` when the task was cancelled.
        private func run(
            _ command: RemoteCommand, _ handler: CommandHandler
        ) async throws(FerryError) -> (CommandAnswer.Outcome, [UInt8]) {
            let left = Duration.milliseconds(max(0, command.deadline - store.milliseconds))
            let (result, isLate) = await withTaskGroup(of: Race.self) { [time = store.time] group in
                group.addTask {
                    do { return .ended(.success(try await handler.run(command))) } catch {
                        return .ended(.failure(error))
                    }
                }
                group.addTask {
                    try? await time.sleep(for: left)
                    return .late
                }
                var isLate = false
                while let next = await group.next() {
                    switch next {
                    case .ended(let result):
                        group.cancelAll()
                        return (result, isLate)
                    case .late:
                        isLate = true
                        group.cancelAll()
                    }
                }
                return (.failure(CancellationError()), isLate)
            }
            switch result {
            case .success(let body): return (.done, body)
            case .failure(let error):
                if Task.isCancelled {
                    throw FerryError(.cancelled, "The task was cancelled while it ran the command \(command.name).")
                }
                guard !isLate else {
                    return (.interrupted, Array("It had not ended at its deadline, and was cancelled.".utf8))
                }
                return (.failed, Self.cut((error as? FerryError)?.message ?? "\(error)"))
            }
        }

        private static func text(_ outcome: CommandAnswer.Outcome, _ command: RemoteCommand) -> String {
            switch outcome {
            case .expired: "Its deadline had passed by the peer's clock, and it was not begun."
            case .unknown: "The peer has no command \(command.name)."
            case .interrupted: "The peer ended while it ran the command, and does not know how far it came."
            case .refused:
                "The peer remembers \(RecordStore.largestCommandCount) commands whose deadlines have not passed, and takes no more. Give "
                    + "commands shorter deadlines."
            case .done, .failed: ""
            }
        }

        private static func cut(_ text: String) -> [UInt8] {
            guard text.utf8.count > longestText else { return Array(text.utf8) }
            return Array(String(decoding: text.utf8.prefix(longestText), as: UTF8.self).utf8)
        }
    }
#endif
