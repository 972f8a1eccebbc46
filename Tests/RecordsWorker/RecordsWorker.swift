#if Records
    import Ferry
    import FerryRecords
    import Foundation
    import GRDB

    /// A process that appends, exchanges and takes in records until it is ended, or does a fixed part of that.
    ///
    ///     records-worker run STORE SOCKET listen|connect START    # appends START, START + 1, ...; prints what was accepted
    ///     records-worker drain STORE SOCKET listen|connect        # appends nothing; prints "drained" when nothing waits
    ///     records-worker open STORE                               # opens it, as nobody when it is run by root; prints the error
    ///     records-worker speed FOLDER RECORDS                     # prints ratios of speeds, see Speed.swift
    ///     records-worker full STORE STORE MARK                    # while there is a file MARK, a disk is full (faults.c)
    ///     records-worker small FOLDER FOLDER                      # a store on the first, a small disk: see SmallDisk.swift
    ///     records-worker scenario STORE STORE                     # a little of everything in one process; prints what was accepted
    @main struct RecordsWorker {
        static func main() async throws {
            let arguments = CommandLine.arguments
            // Whoever reads may have gone; that is told by errors.
            signal(SIGPIPE, SIG_IGN)
            switch (arguments.dropFirst().first, arguments.count) {
            case ("run", 6), ("drain", 5): try await run(arguments)
            case ("open", 3): await open(arguments[2])
            case ("speed", 4): try await Speed(arguments[2], Int(arguments[3]) ?? 0).run()
            case ("small", 4):
                do { try await SmallDisk(folder: arguments[2], other: arguments[3]).run() } catch { fail(error) }
            case ("full", 5): try await full(arguments[2], arguments[3], arguments[4])
            case ("scenario", 4): try await scenario(arguments[2], arguments[3])
            default: fatalError("see Tests/RecordsWorker/RecordsWorker.swift")
            }
        }

        /// Nobody may write to what is read-only; root may.
        private static func open(_ path: String) async {
            if geteuid() == 0 { _ = setuid(65_534) }
            do throws(FerryError) {
                let store = try RecordStore.open(path)
                await store.close()
                say("opened")
            } catch {
                say("\(error.code)")
                say(error.message)
            }
        }

        static var configuration: RecordStore.Configuration {
            var configuration = RecordStore.Configuration()
            configuration.greeting = configuration.patience
            configuration.highWaterRecords = 200
            configuration.lowWaterRecords = 100
            configuration.largestRecord = 1000
            configuration.inboxCapacity = 20_000
            configuration.batchBytes = 100
            return configuration
        }

        /// One write, so that a reader sees whole lines of a process that is ended.
        static func say(_ text: String) { _ = (text + "\n").withCString { write(1, $0, strlen($0)) } }

        static func stream(of number: Int) -> String { "s\(number % 3)" }

        /// Takes a record into the app's own table.
        static func take(_ record: ArrivedRecord) async throws {
            let number = Int(String(decoding: record.bytes, as: UTF8.self)) ?? -1
            try await record.done { database in
                try database.execute(
                    sql: "CREATE TABLE IF NOT EXISTS taken (id INTEGER PRIMARY KEY, stream TEXT, number INTEGER)")
                try database.execute(
                    sql: "INSERT INTO taken (stream, number) VALUES (?, ?)", arguments: [record.id.stream, number])
            }
        }

        private static func run(_ arguments: [String]) async throws {
            let store = try RecordStore.open(arguments[2], configuration: configuration)
            let isRunning = arguments[1] == "run"
            try await withThrowingTaskGroup { group in
                group.addTask { for try await record in store.inbox { try await take(record) } }
                group.addTask { try await exchange(store, arguments[3], listens: arguments[4] == "listen", isRunning) }
                if isRunning {
                    var number = Int(arguments[5]) ?? 0
                    while true {
                        try await store.append(Array("\(number)".utf8), to: "peer", stream: stream(of: number))
                        say("\(number)")
                        number += 1
                    }
                }
                try await store.drained("peer", within: .seconds(3600))
                say("drained")
                try await group.waitForAll()
            }
        }

        /// One exchange after the other, each over a link that breaks soon while `breaks`.
        private static func exchange(_ store: RecordStore, _ path: String, listens: Bool, _ breaks: Bool) async throws {
            let listener = listens ? PacketLink.listen(path) : -1
            while true {
                guard let link = listens ? PacketLink.accept(listener) : PacketLink.connect(path) else {
                    try await Task.sleep(for: .milliseconds(2))
                    continue
                }
                let channel = try MessageChannel(over: link, codec: BytesCodec())
                let breaking = Task {
                    try await Task.sleep(for: .milliseconds(Int.random(in: 5...80)))
                    if breaks { link.close() }
                }
                _ = try? await store.exchange(over: channel, with: "peer")
                breaking.cancel()
            }
        }

        /// Whatever fails ends the process.
        private static func scenario(_ first: String, _ second: String) async throws {
            do {
                let (a, b) = (
                    try RecordStore.open(first, configuration: configuration),
                    try RecordStore.open(second, configuration: configuration)
                )
                for number in 0..<6 {
                    try await a.append(Array("\(number)".utf8), to: "peer", stream: stream(of: number))
                    say("\(number)")
                }
                try await a.append(contentsOf: (6..<60).map { Array("\($0)".utf8) }, to: "peer", stream: "s0")
                for number in 6..<60 { say("\(number)") }
                let (near, far) = PacketLink.pair()
                let channels = (
                    try MessageChannel(over: near, codec: BytesCodec()),
                    try MessageChannel(over: far, codec: BytesCodec())
                )
                let here = Task { try await a.exchange(over: channels.0, with: "peer") }
                let there = Task { try await b.exchange(over: channels.1, with: "peer") }
                let ends = Task {
                    for task in [here, there] { do { _ = try await task.value } catch { fail(error) } }
                }
                var count = 0
                for try await record in b.inbox {
                    try await take(record)
                    count += 1
                    if count == 60 { break }
                }
                try await a.drained("peer", within: .seconds(3600))
                try await b.compact()
                ends.cancel()
                _exit(0)
            } catch { fail(error) }
        }

        /// Appends and exchanges with the disk full and gone again, four times. Prints the number of each record that was accepted,
        /// the same with `-` for one that was refused, and the errors that the exchanges ended with.
        private static func full(_ first: String, _ second: String, _ mark: String) async throws {
            do {
                let (a, b) = (
                    try RecordStore.open(first, configuration: configuration),
                    try RecordStore.open(second, configuration: configuration)
                )
                var number = 0
                for _ in 0..<4 {
                    for isFull in [false, true] {
                        if isFull { close(creat(mark, 0o600)) }
                        for _ in 0..<5 {
                            number += 1
                            let failure = await append(number, to: a)
                            say(failure == nil ? "\(number)" : "-\(number)")
                            if let failure, failure.code != .diskFull || !isFull { fail(failure) }
                        }
                        if isFull { say(try await meetFull(a, b)) }
                    }
                    unlink(mark)
                    while try await a.waiting().contains(where: { $0.count > 0 }) { _ = try await meet(a, b) }
                }
                say("drained")
                _exit(0)
            } catch { fail(error) }
        }

        /// On a slow machine an exchange may be idle for long enough before it has come to anything. The test ends a process that
        /// waits in vain.
        private static func meetFull(_ a: RecordStore, _ b: RecordStore) async throws -> String {
            var ends = ""
            repeat { ends = try await meet(a, b) } while !ends.contains("diskFull")
            return ends
        }

        /// One exchange; says how it ended on either side.
        private static func meet(_ a: RecordStore, _ b: RecordStore) async throws -> String {
            let (near, far) = PacketLink.pair()
            let channels = (
                try MessageChannel(over: near, codec: BytesCodec()), try MessageChannel(over: far, codec: BytesCodec())
            )
            async let here = end(a, channels.0)
            async let there = end(b, channels.1)
            let ends = await (here, there)
            return "\(ends.0), \(ends.1)"
        }

        private static func end(_ store: RecordStore, _ channel: MessageChannel<[UInt8], [UInt8]>) async -> String {
            do throws(FerryError) {
                try await store.exchange(over: channel, with: "peer", endingWhenIdle: .milliseconds(200))
                return "complete"
            } catch { return "\(error.code)" }
        }

        private static func append(_ number: Int, to store: RecordStore) async -> FerryError? {
            do throws(FerryError) {
                try await store.append(Array("\(number)".utf8), to: "peer", stream: stream(of: number))
                return nil
            } catch { return error }
        }

        private static func fail(_ error: any Error) -> Never {
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            _exit(3)
        }
    }

    extension PacketLink {
        static func listen(_ path: String) -> Int32 {
            unlink(path)
            let descriptor = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
            guard withAddress(path, { bind(descriptor, $0, $1) }) == 0, Foundation.listen(descriptor, 4) == 0 else {
                fatalError("cannot listen at \(path)")
            }
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            return descriptor
        }

        static func accept(_ listener: Int32) -> PacketLink? {
            let descriptor = Foundation.accept(listener, nil, nil)
            return descriptor < 0 ? nil : PacketLink(descriptor, peer: PeerIdentity("peer", certainty: .address))
        }

        static func connect(_ path: String) -> PacketLink? {
            let descriptor = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
            guard withAddress(path, { Foundation.connect(descriptor, $0, $1) }) == 0 else {
                Foundation.close(descriptor)
                return nil
            }
            return PacketLink(descriptor, peer: PeerIdentity("peer", certainty: .address))
        }

        private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32
        {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { target in
                target.copyBytes(from: Array(path.utf8.prefix(target.count - 1)))
            }
            return withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
    }
#else
    @main struct RecordsWorker { static func main() { print("Built without the trait Records.") } }
#endif
