#if NATS && Records
    import Ferry
    import FerryRecords
    import Synchronization

    /// The commands that this side has sent and that have no answer yet, and the answers that were not taken yet.
    final class CommandCalls: Sendable {
        private enum Call {
            case sent
            case awaited(CheckedContinuation<CommandAnswer?, Never>)
            case answered(CommandAnswer)
        }

        private struct Entry {
            let peer: String
            /// After that no answer is awaited.
            let end: Timestamp
            var call: Call
        }

        /// The most commands without an answer.
        static let most = 65_536

        private let entries = Mutex<[CommandID: Entry]>([:])

        /// Expects an answer to a command. Commands that were sent and whose answers were never asked for are forgotten at their end.
        ///
        /// - Throws: `queueFull`.
        func expect(_ id: CommandID, from peer: String, until end: Timestamp, now: Timestamp) throws(FerryError) {
            let hasRoom = entries.withLock { entries in
                if entries.count >= Self.most {
                    entries = entries.filter { _, entry in
                        if case .awaited = entry.call { true } else { entry.end > now }
                    }
                }
                guard entries.count < Self.most else { return false }
                entries[id] = Entry(peer: peer, end: end, call: .sent)
                return true
            }
            guard hasRoom else {
                throw FerryError(
                    .queueFull, "\(Self.most) commands have no answer yet. Await some before sending more.",
                    fate: .nothingSent)
            }
        }

        /// Takes an answer. Ignores one to a command that was not sent from here, or from another peer than the command's: a user who
        /// may publish records can write any.
        func take(_ answer: CommandAnswer, from peer: String) {
            let waiting = entries.withLock { entries -> CheckedContinuation<CommandAnswer?, Never>? in
                guard let entry = entries[answer.id], entry.peer == peer else { return nil }
                switch entry.call {
                case .sent:
                    entries[answer.id]?.call = .answered(answer)
                    return nil
                case .awaited(let waiting):
                    entries[answer.id] = nil
                    return waiting
                // The first one holds.
                case .answered: return nil
                }
            }
            waiting?.resume(returning: answer)
        }

        /// Waits for the answer to a command, and forgets the command.
        ///
        /// - Parameter deadline: when to give up.
        /// - Returns: nil after the deadline, or when the task was cancelled.
        func answer(to id: CommandID, until deadline: Timestamp, _ time: any TimeSource) async -> CommandAnswer? {
            let timer = time.schedule(at: deadline) { self.forget(id) }
            defer { timer.cancel() }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    enum Now { case waits, has(CommandAnswer?) }
                    let now = entries.withLock { entries -> Now in
                        guard let entry = entries[id], !Task.isCancelled else {
                            entries[id] = nil
                            return .has(nil)
                        }
                        if case .answered(let answer) = entry.call {
                            entries[id] = nil
                            return .has(answer)
                        }
                        entries[id]?.call = .awaited(continuation)
                        return .waits
                    }
                    if case .has(let answer) = now { continuation.resume(returning: answer) }
                }
            } onCancel: {
                forget(id)
            }
        }

        /// Forgets a command; a caller that awaits its answer gets none.
        func forget(_ id: CommandID) {
            let entry = entries.withLock { $0.removeValue(forKey: id) }
            if case .awaited(let waiting) = entry?.call { waiting.resume(returning: nil) }
        }
    }
#endif
