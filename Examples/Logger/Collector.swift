#if Records
    import Ferry
    import FerryRecords
    import GRDB

    /// Takes in the readings of each peer that connects, each exactly once, into its own table.
    struct Collector: Sendable {
        let store: RecordStore
        let transport: any Transport

        /// Serves thermometers, several at a time, until the task is cancelled.
        func serve() async throws {
            let listener = try await transport.listen()
            listener.onInterruption { print("collector: \($0?.message ?? "thermometers can come again")") }
            await withDiscardingTaskGroup { group in
                for await link in listener.links {
                    group.addTask {
                        do {
                            let channel = try MessageChannel(over: link, codec: BytesCodec())
                            try await store.exchange(over: channel)
                        } catch {
                            print("collector: \(link.peer) left in the middle of something; what is committed stays")
                        }
                    }
                }
            }
        }

        /// Until so many readings are in the table. A reading and the word that it is done are one transaction: should this end
        /// in between, neither is there, and the reading comes again.
        func collect(_ count: Int) async throws -> [Int] {
            var numbers: [Int] = []
            for try await record in store.inbox {
                let words = String(decoding: record.bytes, as: UTF8.self).split(separator: " ")
                if record.id.stream == "alarm" {
                    try await record.done()
                    print("collector: it is \(words.first ?? "?") degrees at \(record.peer)")
                    continue
                }
                guard words.count == 2, let number = Int(words[0]), let celsius = Double(words[1]) else {
                    // It cannot be read, so it must not come again.
                    try await record.done()
                    continue
                }
                let (peer, id) = (record.peer, "\(record.id)")
                try await record.done { database in
                    try database.execute(
                        sql: "CREATE TABLE IF NOT EXISTS reading (id TEXT PRIMARY KEY, thermometer TEXT, celsius REAL)")
                    try database.execute(sql: "INSERT INTO reading VALUES (?, ?, ?)", arguments: [id, peer, celsius])
                }
                numbers.append(number)
                if numbers.count == count { break }
            }
            return numbers
        }
    }
#endif
