#if Records
    import ArgumentParser
    import Ferry
    import FerryRecords
    import Foundation

    /// `ferry outbox`: the records that wait in a store.
    struct Outbox: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Looks after a store of records: lists, adds and forgets pending records.",
            discussion: """
                One process at a time has a store open: end the one that has it first; the error says which. Records are sent by \
                the next program that exchanges with their peer.
                """,
            subcommands: [List.self, Show.self, Send.self, Expire.self, Peers.self, Forget.self])

        /// The store that a command is about.
        struct StoreOption: ParsableArguments {
            @Argument(help: "The file of the store.")
            var store: String

            /// Opens it; makes none, unless that is wanted.
            func use<Value>(making: Bool = false, _ body: (RecordStore) async throws -> Value) async throws -> Value {
                guard making || FileManager.default.fileExists(atPath: store) else {
                    throw CommandFailure("There is no store \(store).")
                }
                do {
                    return try await RecordStore.open(store).closing(body)
                } catch let error as FerryError { throw CommandFailure(error.message) }
            }
        }

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lists pending records by peer and stream, and notices.")

            @OptionGroup var store: StoreOption

            func run() async throws { print(try await text(), terminator: "") }

            func text() async throws -> String {
                try await store.use { store in
                    let rows = try await store.waiting().map { stream in
                        [
                            Outbox.printable(stream.peer),
                            stream.stream.isEmpty ? "(none)" : Outbox.printable(stream.stream), "\(stream.count)",
                            "\(stream.bytes)", "\(stream.committedThrough)",
                        ]
                    }
                    var lines = Outbox.aligned([["peer", "stream", "records", "bytes", "committed through"]] + rows)
                    if rows.isEmpty { lines = "Nothing was ever appended.\n" }
                    for notice in try await store.notices() {
                        lines += "\(notice.date.formatted(.iso8601)) \(Outbox.printable(notice.text))\n"
                    }
                    return lines
                }
            }
        }

        struct Show: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Shows the records that wait in a stream, oldest first.")

            @OptionGroup var store: StoreOption
            @Argument(help: "The peer's name, or its public key.") var peer: String
            @Option(help: "The stream's name.") var stream = ""
            @Option(help: "The most records to list.") var limit = 20

            func validate() throws {
                guard (1...100_000).contains(limit) else {
                    throw ValidationError("--limit \(limit) is out of range; give 1 to 100000.")
                }
            }

            func run() async throws { print(try await text(), terminator: "") }

            func text() async throws -> String {
                try await store.use { store in
                    let rows = try await store.records(to: StorePeer.name(peer), stream: stream, limit: limit).map {
                        record in
                        [
                            "\(record.id.sequence)", "\(record.id.epoch)", "\(record.priority.rawValue)",
                            record.expires?.formatted(.iso8601) ?? "-", "\(record.bytes.count)",
                            Outbox.preview(record.bytes),
                        ]
                    }
                    return Outbox.aligned([["sequence", "epoch", "priority", "expires", "bytes", "record"]] + rows)
                }
            }
        }

        struct Send: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Appends a record, or each line of standard input as one, to be sent to a peer.")

            @OptionGroup var store: StoreOption
            @Argument(help: "The peer's name, or its public key.") var peer: String
            @Argument(help: "The record, as text; each line of standard input unless given, or for -.") var text:
                String?
            @Option(help: "The stream's name.") var stream = ""
            @Option(help: "0 (when nothing else waits) to 3 (urgent).") var priority: UInt8 = 1
            @Option(help: "Seconds after which the record is dropped unsent; never unless given.") var expires: Double?

            func validate() throws {
                guard priority <= 3 else {
                    throw ValidationError("--priority \(priority) is out of range; give 0 to 3.")
                }
                if let expires, !(expires > 0 && expires <= 1e10) {
                    throw ValidationError("--expires \(expires) is out of range; give more than 0 and at most 1e10.")
                }
            }

            func run() async throws { print("\(try await append()) appended") }

            func append() async throws -> Int {
                try await store.use(making: true) { store in
                    let deadline = expires.map { Date(timeIntervalSinceNow: $0) }
                    var count = 0
                    let text = text == "-" ? nil : text
                    while let record = count == 0 ? text ?? readLine() : text == nil ? readLine() : nil {
                        try await store.append(
                            Array(record.utf8), to: StorePeer.name(peer), stream: stream,
                            priority: .init(rawValue: priority),
                            expires: deadline, whenFull: .refuse)
                        count += 1
                    }
                    return count
                }
            }
        }

        struct Expire: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Withdraws the records whose time has come, and gives their room on the disk back.")

            @OptionGroup var store: StoreOption

            func run() async throws {
                let count = try await store.use { store in
                    let count = try await store.expire()
                    try await store.compact()
                    return count
                }
                print("\(count) withdrawn")
            }
        }

        struct Peers: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lists the peers that the store knows, and the store that each name is bound to.")

            @OptionGroup var store: StoreOption

            func run() async throws { print(try await text(), terminator: "") }

            func text() async throws -> String { try await Outbox.peersText(store) }
        }

        struct Forget: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Lets a peer come with another store or key: a device that was replaced or reset.",
                discussion: """
                    A peer's name is bound to its key, and otherwise to the first store that comes under it; another one is refused. What \
                    waits for the peer goes to the store that comes next under its name. A peer that left nothing, and for which \
                    nothing waits, gives its place in the store back.
                    """)

            @OptionGroup var store: StoreOption
            @Argument(help: "The peer's name, as ferry outbox peers has it, or its public key.") var peer: String

            func run() async throws { print(try await text()) }

            func text() async throws -> String { try await Outbox.forgetText(store, peer) }
        }

        /// The peers of a store, as a table.
        static func peersText(_ option: StoreOption) async throws -> String {
            try await option.use { store in
                let rows = try await store.peers().map { peer in
                    [
                        printable(peer.name), peer.store?.description ?? "-", peer.epoch?.description ?? "-",
                        peer.certainty.map { "\($0)" } ?? "-", peer.key.map(printable) ?? "-", "\(peer.waiting)",
                        "\(peer.undone)",
                    ]
                }
                guard !rows.isEmpty else { return "The store knows no peer.\n" }
                return aligned([["peer", "store", "epoch", "known by", "key", "waiting", "undone"]] + rows)
            }
        }

        /// Forgets a peer's identity; says the outcome.
        static func forgetText(_ option: StoreOption, _ peer: String) async throws -> String {
            try await option.use { store in
                let name = try StorePeer.name(peer)
                try await store.forgetIdentity(of: name)
                let isThere = try await store.peers().contains { $0.name == name }
                return isThere ? "\(printable(peer)) can come with another store" : "\(printable(peer)) is forgotten"
            }
        }

        // MARK: Text

        /// Columns; the last one as it is.
        static func aligned(_ rows: [[String]]) -> String {
            let columns = rows.first?.indices ?? 0..<0
            let widths = columns.map { column in rows.map { $0[column].count }.max() ?? 0 }
            return rows.map { row in
                zip(row, widths).enumerated().map { index, cell in
                    let space = String(repeating: " ", count: cell.1 - cell.0.count)
                    return index == columns.upperBound - 1 ? cell.0 : cell.0 + space
                }.joined(separator: "  ") + "\n"
            }.joined()
        }

        /// A peer's text, without what would move a terminal's cursor.
        static func printable(_ text: String) -> String {
            String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isHarmless ? $0 : "\u{FFFD}" }))
        }

        /// The first 60 bytes: as text where it is text, as hexadecimal otherwise.
        static func preview(_ bytes: [UInt8]) -> String {
            let start = bytes.prefix(60)
            let more = bytes.count > 60 ? "..." : ""
            if let text = String(validating: start, as: UTF8.self) { return printable(text) + more }
            return start.hexadecimal() + more
        }
    }
#else
    import ArgumentParser

    /// `ferry outbox`: not part of this build.
    struct Outbox: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Looks after a store of records. Not part of this build: it needs the trait Records.")

        @Argument(parsing: .captureForPassthrough) var arguments: [String] = []

        func run() throws {
            throw ValidationError(
                "Stores are not part of this build. Build with the trait Records: swift run --traits Records ferry outbox ..."
            )
        }
    }
#endif
