#if Records
    import Ferry
    import GRDB

    /// What a store remembers of commands, and how an answer takes a command's place.
    extension RecordStore {
        /// The most commands that are remembered, each until its deadline has passed.
        static var largestCommandCount: Int { 65_536 }

        /// Decides what to do with a command, and remembers one that runs at most once as begun.
        ///
        /// - Throws: `closed`, `diskFull`, `storeFailed`.
        func admit(_ command: RemoteCommand, _ mode: CommandHandler.Mode?) async throws(FerryError) -> CommandStep {
            let now = milliseconds
            return try await write { database, _ in
                // Not those that were begun: their commands are in the inbox, and have no answer yet.
                try database.cachedStatement(
                    sql: "DELETE FROM ferry_command WHERE deadline < ? AND state = \(CommandMemory.answered.rawValue)"
                ).execute(arguments: [now])
                let memory = try Self.memory(of: command.id, database)
                let count = try Int.fetchOne(database.cachedStatement(sql: "SELECT count(*) FROM ferry_command")) ?? 0
                let step = CommandStep(
                    memory, mode, isOver: command.deadline < now, hasRoom: count < Self.largestCommandCount)
                if step == .run, mode == .once { try Self.remember(command, .begun, database) }
                return step
            }
        }

        /// Puts a command's answer into the outbox for the peer that has sent the command, and takes the command out of the inbox: both
        /// or neither. Waits for room in the outbox.
        ///
        /// - Throws: `messageTooLarge`, `recordNotFound` when the command is in the inbox no longer; `cancelled`, `closed`, `diskFull`,
        ///   `storeFailed`.
        func reply(
            to record: ArrivedRecord, _ command: RemoteCommand, with answer: CommandAnswer
        ) async throws(FerryError) {
            // A peer that is away for long leaves the outbox full for as long.
            let year = WhenFull.wait(atMost: .seconds(365 * 86_400))
            _ = try await put(
                [answer.encoded], to: record.peer, CommandAnswer.stream, .normal, nil, year,
                following: { database in
                    guard try Self.isThere(record, database) else {
                        throw FerryError(.recordNotFound, "The command \(command.name) is not in the inbox any more.")
                    }
                },
                followedBy: { database, book in
                    _ = try Self.remove(record, database, &book)
                    // A command that was never begun is not remembered: its duplicate gets an answer too, and the caller takes the first.
                    if try Self.memory(of: command.id, database) == .begun {
                        try Self.remember(command, .answered, database)
                    }
                })
            watch.release(RecordsMessage.cost(of: record.storedBytes), of: record.peerNumber)
        }

        /// Takes a record out of the inbox.
        ///
        /// - Parameter notice: what people are to know of it; nil for nothing.
        /// - Throws: `closed`, `diskFull`, `storeFailed`.
        func discard(_ record: ArrivedRecord, notice text: String? = nil) async throws(FerryError) {
            let wasThere = try await write(as: .lasting) { [self] database, book in
                guard try Self.remove(record, database, &book) else { return false }
                if let text { try notice(text, about: record.peer, database) }
                return true
            }
            if wasThere { watch.release(RecordsMessage.cost(of: record.storedBytes), of: record.peerNumber) }
        }

        /// Takes a record's row away, and what the book has of it; returns whether it was there.
        private static func remove(_ record: ArrivedRecord, _ database: Database, _ book: inout Book) throws -> Bool {
            guard try delete(record, database) else { return false }
            try book.remove(1, record.storedBytes, fromInbound: record.stream)
            return true
        }

        private func write<Value: Sendable>(
            as kind: Committer.Kind = .growing,
            _ body: @escaping @Sendable (Database, inout Book) throws -> Value
        ) async throws(FerryError) -> Value {
            do { return try await committer.perform(as: kind, body) } catch { throw storeError(error, at: path) }
        }

        private static func memory(of id: CommandID, _ database: Database) throws -> CommandMemory {
            let statement = try database.cachedStatement(
                sql: "SELECT high, low, deadline, state, checksum FROM ferry_command WHERE high = ? AND low = ?")
            statement.set(1, Int64(bitPattern: id.high))
            statement.set(2, Int64(bitPattern: id.low))
            return try statement.firstRow(of: "ferry_command", keys: 2, database) { row in
                let (deadline, state) = (try row.number(2), try row.number(3, 1...2))
                try row.check(4, checksum(id, deadline, state))
                return CommandMemory(rawValue: state) ?? .unknown
            } ?? .unknown
        }

        private static func remember(
            _ command: RemoteCommand, _ memory: CommandMemory, _ database: Database
        ) throws {
            let checksum = checksum(command.id, command.deadline, memory.rawValue)
            try database.cachedStatement(
                sql:
                    "INSERT OR REPLACE INTO ferry_command (high, low, deadline, state, checksum) VALUES (?, ?, ?, ?, ?)"
            ).execute(arguments: [
                Int64(bitPattern: command.id.high), Int64(bitPattern: command.id.low), command.deadline,
                memory.rawValue,
                checksum.column,
            ])
        }

        private static func checksum(_ id: CommandID, _ deadline: Int64, _ state: Int64) -> RowChecksum {
            var checksum = RowChecksum(.command)
            checksum.add(bits: id.high)
            checksum.add(bits: id.low)
            checksum.add(deadline)
            checksum.add(state)
            return checksum
        }
    }
#endif
