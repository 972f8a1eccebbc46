#if Records
    import Ferry
    import FerryRecords
    import Foundation
    import GRDB

    /// Records a second beside plain SQLite inserts of the same rows with the same durability, beside a channel without a
    /// store, and with many records waiting beside few: ratios, for seconds are the machine's.
    ///
    /// Records have 100 bytes; a transaction has 80 of them, as many as a message of an exchange.
    struct Speed {
        private let folder: String
        private let count: Int
        private let batch = 80
        private let record = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        private let few = 1000
        /// Fewer where it is only to be seen that it runs.
        private var rounds: Int { count < 100_000 ? 3 : 24 }

        init(_ folder: String, _ count: Int) {
            self.folder = folder
            self.count = max(few * 2, count / 80 * 80)
        }

        func run() async throws {
            // Each in turn and three times over, so that what else the machine does meets all alike.
            var rates: [String: [Double]] = [:]
            let sample = min(count, 40_000)
            for round in 0..<3 {
                rates["plain", default: []].append(try plain("plain\(round)", sample))
                rates["append", default: []].append(try await append("append\(round)", sample))
                rates["receive", default: []].append(try await receive("receive\(round)", sample))
                rates["channel", default: []].append(try await channel(sample))
            }
            func median(_ name: String) -> Double { (rates[name] ?? []).sorted()[1] }
            for name in ["plain", "append", "receive", "channel"] { say(name, "\(Int(median(name))) records/s") }
            say("append beside plain inserts", percent(median("append") / median("plain")))
            say("receive beside plain inserts", percent(median("receive") / median("plain")))
            say("receive beside a channel without a store", percent(median("receive") / median("channel")))
            try await many()
        }

        private func say(_ what: String, _ value: String) { RecordsWorker.say("\(what): \(value)") }
        private func percent(_ value: Double) -> String { "\(Int((value * 100).rounded())) %" }

        private func measure(_ count: Int, _ body: () async throws -> Void) async throws -> Double {
            let start = ContinuousClock.now
            try await body()
            return Double(count) / (start.duration(to: .now) / .seconds(1))
        }

        // MARK: Beside SQLite

        private func plain(_ name: String, _ count: Int) throws -> Double {
            var settings = GRDB.Configuration()
            settings.journalMode = .default
            settings.prepareDatabase { database in
                try database.execute(
                    sql: "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            }
            let database = try DatabaseQueue(path: folder + "/" + name, configuration: settings)
            try database.write { database in
                try database.execute(
                    sql: """
                        CREATE TABLE waiting (stream INTEGER NOT NULL, sequence INTEGER NOT NULL, record BLOB NOT NULL,
                        PRIMARY KEY (stream, sequence)) WITHOUT ROWID
                        """)
            }
            let data = Data(record)
            let start = ContinuousClock.now
            for first in stride(from: 0, to: count, by: batch) {
                try database.write { database in
                    let statement = try database.cachedStatement(sql: "INSERT INTO waiting VALUES (?, ?, ?)")
                    for number in first..<first + batch { try statement.execute(arguments: [1, number, data]) }
                }
            }
            let rate = Double(count) / (start.duration(to: .now) / .seconds(1))
            try database.close()
            return rate
        }

        private func append(_ name: String, _ count: Int) async throws -> Double {
            let store = try RecordStore.open(folder + "/" + name)
            let rate = try await measure(count) { try await fill(store, count) }
            await store.close()
            return rate
        }

        private func fill(_ store: RecordStore, _ count: Int, batch: Int? = nil) async throws {
            let batch = batch ?? self.batch
            let records = Array(repeating: record, count: batch)
            for first in stride(from: 0, to: count, by: batch) {
                try await store.append(contentsOf: Array(records.prefix(min(batch, count - first))), to: "b")
            }
        }

        // MARK: Beside a channel

        private func channels() throws -> (MessageChannel<[UInt8], [UInt8]>, MessageChannel<[UInt8], [UInt8]>) {
            let (near, far) = PacketLink.pair(maximumChunkSize: 8000)
            return (
                try MessageChannel(over: near, codec: BytesCodec()), try MessageChannel(over: far, codec: BytesCodec())
            )
        }

        /// From one store's outbox onto the other's disk, and out of the outbox.
        private func receive(_ name: String, _ count: Int) async throws -> Double {
            let (a, b) = try stores(name)
            try await fill(a, count, batch: 4000)
            let (near, far) = try channels()
            let tasks = [exchange(a, near, "b"), exchange(b, far, "a")]
            let rate = try await measure(count) { try await a.drained("b", within: .seconds(600)) }
            for task in tasks { task.cancel() }
            await a.close()
            await b.close()
            return rate
        }

        private func stores(_ name: String) throws -> (RecordStore, RecordStore) {
            var configuration = RecordStore.Configuration()
            // Nobody reads here, and all is to arrive.
            configuration.inboxCapacity = 1 << 40
            return (
                try RecordStore.open(folder + "/" + name + "-a"),
                try RecordStore.open(folder + "/" + name + "-b", configuration: configuration)
            )
        }

        private func exchange(
            _ store: RecordStore, _ channel: MessageChannel<[UInt8], [UInt8]>, _ peer: String
        ) -> Task<Void, Never> {
            Task { _ = try? await store.exchange(over: channel, with: peer) }
        }

        /// The same bytes in the same number of messages, on no disk.
        private func channel(_ count: Int) async throws -> Double {
            let (near, far) = try channels()
            let message = Array(repeating: record, count: batch).flatMap(\.self)
            let messages = count / batch
            let reading = Task {
                var read = 0
                for try await _ in far.messages {
                    read += 1
                    if read == messages { break }
                }
            }
            let rate = try await measure(count) {
                for _ in 0..<messages { try await near.send(message, options: SendOptions(receipt: .handedOver)) }
                try await reading.value
            }
            near.close()
            far.close()
            return rate
        }

        // MARK: Many that wait

        /// What a record took, in seconds.
        private struct Cost {
            let seconds: Double
            let processor: Double
        }

        /// Two pairs of stores, one where few wait and one where many do: appended to and drained in turn, so that what else the
        /// machine does meets both alike. What others leave of the processor does not change how much of it a record takes.
        private func many() async throws {
            let (a, b) = try stores("few")
            let (c, d) = try stores("many")
            let sample = min(20 * few, count / 2)
            // Enough for several checkpoints of the log in all rounds, whose costs belong to it.
            let appended = min(4 * few, count / 2)
            var costs: [[Cost]] = [[], [], [], []]
            try await a.append(record, to: "b")
            _ = try await drainFew(a, b, sample)
            let before = memory()
            try await topUp(c, count)
            let filled = memory()
            for round in 0..<rounds {
                for isMany in round % 2 == 0 ? [false, true] : [true, false] {
                    if isMany {
                        costs[1].append(try await cost(appended) { try await fill(c, appended) })
                        costs[3].append(try await drainMany(c, d, sample))
                        try await topUp(c, count)
                    } else {
                        try await topUp(a, few)
                        costs[0].append(try await cost(appended) { try await fill(a, appended) })
                        costs[2].append(try await drainFew(a, b, sample))
                    }
                }
            }
            let after = memory()
            for (index, name) in ["append", "drain"].enumerated() {
                let means = [mean(costs[2 * index]), mean(costs[2 * index + 1])]
                for (waiting, mean) in zip([few, count], means) {
                    say(
                        "\(name) with \(waiting) waiting",
                        "\(Int(1 / mean.seconds)) records/s, \(tenths(mean.processor * 1e6)) us of the processor each")
                }
                let what = "\(name) with \(count) waiting beside \(few)"
                say("\(what), by time", percent(means[0].seconds / means[1].seconds))
                say("\(what), by the processor", percent(means[0].processor / means[1].processor))
            }
            say("memory with \(few) waiting", "\(before) kB")
            say("memory with \(count) waiting", "\(filled) kB")
            say("memory after \(rounds) rounds", "\(after) kB")
            for store in [a, b, c, d] { await store.close() }
        }

        private func cost(_ count: Int, _ body: () async throws -> Void) async throws -> Cost {
            let (start, before) = (ContinuousClock.now, processor())
            try await body()
            let seconds = start.duration(to: .now) / .seconds(1)
            return Cost(seconds: seconds / Double(count), processor: (processor() - before) / Double(count))
        }

        private func mean(_ costs: [Cost]) -> Cost {
            Cost(
                seconds: costs.reduce(0) { $0 + $1.seconds } / Double(costs.count),
                processor: costs.reduce(0) { $0 + $1.processor } / Double(costs.count))
        }

        private func left(_ store: RecordStore) async throws -> Int {
            try await store.waiting().reduce(0) { $0 + $1.count }
        }

        /// Appends until so many wait.
        private func topUp(_ store: RecordStore, _ count: Int) async throws {
            let missing = try await count - left(store)
            if missing > 0 { try await fill(store, missing, batch: 4000) }
        }

        /// Drains what waits, and then a few and a few more until there were so many.
        private func drainFew(_ store: RecordStore, _ other: RecordStore, _ part: Int) async throws -> Cost {
            try await exchanging(store, other) {
                try await store.drained("b", within: .seconds(60))
                var costs: [Cost] = []
                for _ in 0..<part / few {
                    // All at once, so that what is measured is the draining.
                    try await fill(store, few, batch: few)
                    costs.append(try await cost(few) { try await store.drained("b", within: .seconds(60)) })
                }
                return mean(costs)
            }
        }

        /// Drains so many, and some more, from when the first have gone.
        private func drainMany(_ store: RecordStore, _ other: RecordStore, _ part: Int) async throws -> Cost {
            let total = try await left(store)
            return try await exchanging(store, other) {
                while try await left(store) == total { try await Task.sleep(for: .milliseconds(1)) }
                let first = try await left(store)
                let (start, before) = (ContinuousClock.now, processor())
                var rest = first
                while rest > 0 && first - rest < part {
                    try await Task.sleep(for: .milliseconds(2))
                    rest = try await left(store)
                }
                let seconds = start.duration(to: .now) / .seconds(1)
                let gone = Double(max(first - rest, 1))
                return Cost(seconds: seconds / gone, processor: (processor() - before) / gone)
            }
        }

        private func exchanging(
            _ store: RecordStore, _ other: RecordStore, _ body: () async throws -> Cost
        ) async throws -> Cost {
            let (near, far) = try channels()
            let tasks = [exchange(store, near, "b"), exchange(other, far, "a")]
            let cost = try await body()
            for task in tasks {
                task.cancel()
                await task.value
            }
            return cost
        }

        private func tenths(_ value: Double) -> String { String(format: "%.1f", value) }

        /// What the process has taken of the processor, in seconds.
        private func processor() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }

        /// What the process has in memory, in kB.
        private func memory() -> Int {
            let statistics = try? String(contentsOfFile: "/proc/self/statm", encoding: .ascii)
            return (statistics?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4
        }
    }
#endif
