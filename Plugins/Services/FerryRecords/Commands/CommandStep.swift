#if Records
    /// What a store remembers of a command that runs at most once.
    enum CommandMemory: Int64, Sendable, CaseIterable {
        /// Not seen, or forgotten after its deadline.
        case unknown
        /// Begun, and not answered.
        case begun
        /// Answered: the answer is in the outbox, or at the peer.
        case answered
    }

    /// The next step for a command that has arrived.
    enum CommandStep: Sendable, Hashable {
        /// Run it; one that runs at most once is remembered as begun first.
        case run
        /// Answer without running it.
        case answer(CommandAnswer.Outcome)
        /// Drop it: it has its answer.
        case drop

        /// Decides by the store's memory of the command.
        ///
        /// - Parameters:
        ///   - memory: what the store remembers of the command.
        ///   - mode: how often it may run; nil when the peer has no such command.
        ///   - isOver: whether its deadline has passed.
        ///   - hasRoom: whether the store can remember one more command.
        init(_ memory: CommandMemory, _ mode: CommandHandler.Mode?, isOver: Bool, hasRoom: Bool) {
            switch (memory, mode) {
            case (.answered, _): self = .drop
            case (.begun, .repeatable): self = .run
            case (.begun, _): self = .answer(.interrupted)
            case (.unknown, _) where isOver: self = .answer(.expired)
            case (.unknown, nil): self = .answer(.unknown)
            case (.unknown, .once) where !hasRoom: self = .answer(.refused)
            case (.unknown, _): self = .run
            }
        }
    }

    /// How a peer runs a command of one name.
    public struct CommandHandler: Sendable {
        /// How often a command may run.
        public enum Mode: Sendable, Hashable, CaseIterable {
            /// At most once. One that the peer's end has interrupted is answered with `interrupted`, and not run again.
            case once
            /// At least once: running it twice does the same as once. One that the peer's end has interrupted is run again.
            case repeatable
        }

        /// How often it may run.
        public let mode: Mode
        /// Does it, and returns the answer's body. When it throws, the answer is `failed`, with the error's text.
        public let run: @Sendable (RemoteCommand) async throws -> [UInt8]

        /// A handler.
        ///
        /// - Parameters:
        ///   - mode: how often a command may run.
        ///   - run: does it, and returns the answer's body; its task is cancelled at the command's deadline, and it must end then.
        public init(_ mode: Mode, run: @escaping @Sendable (RemoteCommand) async throws -> [UInt8]) {
            self.mode = mode
            self.run = run
        }

        /// A command that runs at most once.
        public static func once(_ run: @escaping @Sendable (RemoteCommand) async throws -> [UInt8]) -> CommandHandler {
            CommandHandler(.once, run: run)
        }

        /// A command that does the same when it runs twice.
        public static func repeatable(
            _ run: @escaping @Sendable (RemoteCommand) async throws -> [UInt8]
        ) -> CommandHandler { CommandHandler(.repeatable, run: run) }
    }
#endif
