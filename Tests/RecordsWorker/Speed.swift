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

        private func many() async throws {
            let (a, b) = try stores("many")
            let (near, far) = try channels()
            // With few: appended while nobody takes them, then drained over and over.
            var (appended, drained): ([Double], [Double]) = ([], [])
            for _ in 0..<5 { appended.append(try await measure(few) { try await fill(a, few) }) }
            var tasks = [exchange(a, near, "b"), exchange(b, far, "a")]
            try await a.drained("b", within: .seconds(60))
            for _ in 0..<5 {
                // All at once, so that what is measured is the draining.
                try await fill(a, few, batch: few)
                drained.append(try await measure(few) { try await a.drained("b", within: .seconds(60)) })
            }
            for task in tasks {
                task.cancel()
                await task.value
            }
            // With many: the last ones are appended, and the first ones drained, on top of all the others.
            let before = memory()
            try await fill(a, count - few, batch: 4000)
            var atTheEnd: [Double] = []
            for _ in 0..<5 { atTheEnd.append(try await measure(few) { try await fill(a, few) }) }
            let filled = memory()
            let (here, there) = try channels()
            tasks = [exchange(a, here, "b"), exchange(b, there, "a")]
            let total = count + 4 * few
            // As they come: the time for each thousand of the first twenty thousand, at most half of all.
            let rate = try await drainFirst(a, of: total, min(20_000, total / 2))
            let after = memory()
            for task in tasks {
                task.cancel()
                await task.value
            }
            say("append with \(count) waiting beside \(few)", percent(median(atTheEnd) / median(appended)))
            say("drain with \(count) waiting beside \(few)", percent(rate / median(drained)))
            say("memory with \(few) waiting", "\(before) kB")
            say("memory with \(count) waiting", "\(filled) kB")
            say("memory after some were drained", "\(after) kB")
            await a.close()
            await b.close()
        }

        private func drainFirst(_ store: RecordStore, of total: Int, _ part: Int) async throws -> Double {
            // The first message of the exchange is not part of it.
            while try await store.waiting().reduce(0, { $0 + $1.count }) == total {
                try await Task.sleep(for: .milliseconds(1))
            }
            let start = ContinuousClock.now
            let first = try await store.waiting().reduce(0) { $0 + $1.count }
            while true {
                let left = try await store.waiting().reduce(0) { $0 + $1.count }
                if first - left >= part { return Double(first - left) / (start.duration(to: .now) / .seconds(1)) }
                try await Task.sleep(for: .milliseconds(2))
            }
        }

        private func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

        /// What the process has in memory, in kB.
        private func memory() -> Int {
            let statistics = try? String(contentsOfFile: "/proc/self/statm", encoding: .ascii)
            return (statistics?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4
        }
    }
#endif
