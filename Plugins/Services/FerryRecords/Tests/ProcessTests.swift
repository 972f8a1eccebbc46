#if Records
    import FerryTesting
    import Foundation
    import GRDB
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Processes that are ended at any instant, and disks that fail at any call.
    @Suite(.tags(.records, .recovery, .slow), .serialized, .timeLimit(.minutes(60))) struct ProcessTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        private static var environment: [String: String] { ProcessInfo.processInfo.environment }

        /// A worker, and what it has printed.
        final class Worker: Sendable {
            private let process: ChildProcess
            private let lines = Mutex<(rest: String, all: [String])>(("", []))
            /// What it has said of errors.
            private let complaints = Mutex("")
            private let saidAll: AsyncStream<Never>

            /// - Parameter launcher: a program and its arguments that start the worker, behind which the worker's own come.
            init(_ arguments: [String], _ environment: [String: String] = [:], through launcher: [String] = []) throws {
                // Beside the bundle of the tests.
                let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
                let worker = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent(
                    "RecordsWorker")
                let words = launcher + [worker.path] + arguments
                let (output, errors) = (Pipe(), Pipe())
                let (saidAll, end) = AsyncStream<Never>.makeStream()
                self.saidAll = saidAll
                process = try ChildProcess(
                    words[0], Array(words.dropFirst()),
                    environment: ProcessTests.environment.merging(environment) { $1 },
                    output: .pipe(output), errors: .pipe(errors))
                Thread.detachNewThread { [self] in
                    while case let data = errors.fileHandleForReading.availableData, !data.isEmpty {
                        complaints.withLock { $0 += String(decoding: data, as: UTF8.self) }
                    }
                }
                Thread.detachNewThread { [self] in
                    while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                        lines.withLock { lines in
                            var parts = (lines.rest + String(decoding: data, as: UTF8.self)).split(
                                separator: "\n", omittingEmptySubsequences: false)
                            lines.rest = String(parts.removeLast())
                            lines.all += parts.map(String.init)
                        }
                    }
                    end.finish()
                }
            }

            var output: [String] { lines.withLock { $0.all } }

            /// - Throws: ``NotYet`` when it has ended without: no wait for it would end.
            func has(_ line: String) throws -> Bool {
                let isRunning = process.isRunning
                if output.contains(line) { return true }
                guard !isRunning else { return false }
                throw NotYet(
                    "a worker ended with \(process.ending?.status ?? 0) before it said '\(line)': \(complaints.withLock { $0.prefix(1000) })"
                )
            }

            /// Ends it as a crash does; returns the numbers that it printed.
            func kill() async -> [Int] {
                process.signal(SIGKILL)
                return await wait().numbers
            }

            func wait() async -> (status: Int32, numbers: [Int]) {
                for await _ in saidAll {}
                // The time limit is over: the worker may never end by itself.
                if Task.isCancelled { process.signal(SIGKILL) }
                return (await process.ended().status, numbers)
            }

            /// What it has printed so far.
            var numbers: [Int] { lines.withLock { $0.all.compactMap { Int($0) } } }
        }

        /// What the app of a store has, by stream: what it took, and then what still lies in the inbox.
        private func arrived(_ path: String) async throws -> [String: [Int]] {
            let store = try RecordStore.open(path)
            let rows = try await store.read { database, _ -> [(String, Int)] in
                var rows: [(String, Int)] = []
                if try database.tableExists("taken") {
                    rows += try Row.fetchAll(database, sql: "SELECT stream, number FROM taken ORDER BY id").map {
                        ($0[0], $0[1])
                    }
                }
                rows += try Row.fetchAll(
                    database,
                    sql: """
                        SELECT name, record FROM ferry_arrived JOIN ferry_inbound ON id = stream
                        ORDER BY stream, ferry_arrived.number
                        """
                ).map { ($0[0], Int(String(decoding: $0[1] as Data, as: UTF8.self)) ?? -1) }
                return rows
            }
            await store.close()
            return Dictionary(grouping: rows, by: \.0).mapValues { $0.map(\.1) }
        }

        /// Every accepted record once and in order; others, which the crash caught between disk and word, at most once.
        private func check(_ accepted: [Int], _ path: String, _ what: String) async throws {
            let arrived = try await arrived(path)
            for (stream, numbers) in arrived {
                let wrong = numbers.indices.dropFirst().first { numbers[$0 - 1] >= numbers[$0] }
                let place = wrong.map { numbers[max(0, $0 - 8)..<min(numbers.count, $0 + 8)] }
                #expect(wrong == nil, "\(what): stream \(stream) is out of order or doubled around \(place ?? [])")
            }
            let missing = Set(accepted).subtracting(arrived.values.joined())
            #expect(missing.isEmpty, "\(what): \(missing.count) of \(accepted.count) accepted records are missing")
        }

        /// `FERRY_RECORD_KILLS` for more.
        @Test func processesThatAreKilled() async throws {
            let kills = Self.environment["FERRY_RECORD_KILLS"].flatMap(Int.init) ?? 16
            let seed = UInt64.random(in: 0...UInt64.max)
            var random = SplitMix64(seed: seed)
            let (paths, socket) = ([folder.file("a"), folder.file("b")], folder.file("socket"))
            let roles = ["listen", "connect"]
            var (start, accepted): (Int, [[Int]]) = (0, [[], []])
            func worker(_ side: Int) throws -> Worker {
                start += 1_000_000
                return try Worker(["run", paths[side], socket, roles[side], "\(start)"])
            }
            var workers = [try worker(0), try worker(1)]
            for _ in 0..<kills {
                try await Task.sleep(for: .milliseconds(Int.random(in: 15...150, using: &random)))
                let side = Int.random(in: 0...1, using: &random)
                accepted[side] += await workers[side].kill()
                workers[side] = try worker(side)
            }
            for side in 0...1 {
                // However slow the machine is, each has accepted something.
                let last = workers[side]
                try await until("a record is accepted") { !last.numbers.isEmpty }
                accepted[side] += await last.kill()
                workers[side] = try Worker(["drain", paths[side], socket, roles[side]])
            }
            try await until("nothing waits in either") { [workers] in
                try workers.allSatisfy { try $0.has("drained") }
            }
            for worker in workers { _ = await worker.kill() }
            try await check(accepted[0], paths[1], "seed \(seed), from the first")
            try await check(accepted[1], paths[0], "seed \(seed), from the second")
            #expect(!accepted[0].isEmpty && !accepted[1].isEmpty)
            print(
                "\(kills) kills: \(accepted[0].count) and \(accepted[1].count) records were accepted, and arrived once")
        }

        /// `scripts/bench records` measures with it; here is seen that it runs.
        @Test func speedsAreMeasured() async throws {
            let worker = try Worker(["speed", folder.path, "2000"])
            #expect(await worker.wait().status == 0)
            let ratios = worker.output.filter { $0.hasSuffix(" %") }
            // A machine that stands still for a while makes any ratio of times.
            let costs = ratios.filter { $0.contains("processor") }
            #expect(ratios.count == 7 && !costs.isEmpty, "\(worker.output)")
            #expect(!costs.contains { $0.hasSuffix(" 0 %") }, "\(worker.output)")
        }

        /// What mounts a file system of so many megabytes in memory at a folder, in a namespace of its own, and starts a program there.
        private static func launcher(_ folder: String, megabytes: Int) -> [String] {
            ["/usr/bin/unshare"] + (geteuid() == 0 ? [] : ["--map-root-user"]) + [
                "--mount", "/bin/sh", "-c",
                "mount -t tmpfs -o size=\(megabytes)m tmpfs '\(folder)' && exec \"$0\" \"$@\"",
            ]
        }

        /// Where the system lets no program mount anything, as in some containers, there is no small disk.
        private static let hasSmallDisks: Bool = {
            guard let folder = try? Folder() else { return false }
            let words = launcher(folder.path, megabytes: 1)
            guard let process = try? ChildProcess(words[0], words.dropFirst() + ["/bin/true"], errors: .none) else {
                return false
            }
            return process.endedHere() == .exited(0)
        }()

        /// To the last byte, three times over; sending makes room, and a peer has all that was accepted.
        @Test(.enabled(if: hasSmallDisks), arguments: [3, 8]) func aSmallDiskIsFull(_ megabytes: Int) async throws {
            for name in ["small", "large"] {
                try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
            }
            let small = folder.file("small")
            let worker = try Worker(
                ["small", small, folder.file("large")], through: Self.launcher(small, megabytes: megabytes))
            #expect(await worker.wait().status == 0, "\(worker.output)")
            let accepted = worker.output.first { $0.hasPrefix("accepted ") }?.dropFirst(9)
            let arrived = worker.output.first { $0.hasPrefix("arrived ") }?.dropFirst(8)
            #expect(accepted != nil && accepted == arrived, "\(worker.output)")
            #expect(worker.output.filter { $0.contains("full with") && $0.contains(" 0 bytes free") }.count == 3)
            print("\(megabytes) MB: \(worker.output)")
        }

        struct Fault: Sendable {
            let store: String
            let kind: String
        }

        static let faults = ["a", "b"].flatMap { store in
            ["EIO", "ENOSPC", "short"].map { Fault(store: store, kind: $0) }
        }

        /// The n-th call of a scenario that writes to a store's files fails, for each n, or for one in so many
        /// (`FERRY_RECORD_FAULTS_EVERY`); then the process ends. Needs the library of Tests/RecordsWorker/faults.c, which
        /// `scripts/check records` builds.
        @Test(.enabled(if: environment["FERRY_RECORD_FAULTS"] != nil), arguments: faults)
        func callsThatFail(_ fault: Fault) async throws {
            let library = try #require(Self.environment["FERRY_RECORD_FAULTS"])
            let every = Self.environment["FERRY_RECORD_FAULTS_EVERY"].flatMap(Int.init) ?? 1
            var number = Int.random(in: 1...every) - every
            var (tried, failed) = (0, 0)
            while true {
                number += every
                tried += 1
                let (a, b, mark) = (folder.file("a\(number)"), folder.file("b\(number)"), folder.file("mark\(number)"))
                let worker = try Worker(
                    ["scenario", a, b],
                    [
                        "LD_PRELOAD": library, "FAULT_PREFIX": folder.file("\(fault.store)\(number)"),
                        "FAULT_NUMBER": "\(number)", "FAULT_KIND": fault.kind, "FAULT_MARK": mark,
                    ])
                let (status, accepted) = await worker.wait()
                failed += status == 0 ? 0 : 1
                #expect(status == 0 || status == 3, "call \(number) of \(fault): the process ended with \(status)")
                // Both sides go on without faults, until all is there.
                let socket = folder.file("socket")
                let rest = [try Worker(["drain", a, socket, "connect"]), try Worker(["drain", b, socket, "listen"])]
                try await until("nothing waits in either after call \(number) of \(fault)") {
                    try rest.allSatisfy { try $0.has("drained") }
                }
                for worker in rest { _ = await worker.kill() }
                try await check(accepted, b, "call \(number) of \(fault)")
                for path in [a, b] {
                    for end in ["", "-wal", "-lock", "-mark", "-reserve", "-journal"] {
                        try? FileManager.default.removeItem(atPath: path + end)
                    }
                }
                // Until no such call is left.
                if !FileManager.default.fileExists(atPath: mark) || number >= 2000 { break }
            }
            #expect((fault.kind == "short" || failed > 3) && number > 20 && number < 2000)
            print(
                "store \(fault.store), \(fault.kind): \(tried) of \(number) calls, \(failed) of which ended the process"
            )
        }

        /// A disk of either side is full and gone again: what is refused is told and not there, what was accepted arrives.
        @Test(.enabled(if: environment["FERRY_RECORD_FAULTS"] != nil), arguments: ["a", "b"])
        func aDiskIsFullAndGoneAgain(_ store: String) async throws {
            let library = try #require(Self.environment["FERRY_RECORD_FAULTS"])
            let (a, b, mark) = (folder.file("a"), folder.file("b"), folder.file("mark"))
            let worker = try Worker(
                ["full", a, b, mark],
                [
                    "LD_PRELOAD": library, "FAULT_PREFIX": folder.file(store), "FAULT_KIND": "ENOSPC",
                    "FAULT_WHILE": mark,
                ])
            let (status, numbers) = await worker.wait()
            let refused = numbers.filter { $0 < 0 }.map { -$0 }
            let accepted = numbers.filter { $0 > 0 }
            #expect(status == 0 && worker.output.last == "drained", "\(worker.output)")
            #expect(store == "a" ? refused.count >= 4 : refused.isEmpty, "\(worker.output)")
            let exchanges = worker.output.filter { $0.contains(",") }
            #expect(exchanges.count == 4 && exchanges.allSatisfy { $0.contains("diskFull") }, "\(exchanges)")
            try await check(accepted, b, "\(store) full")
            let arrived = Set(try await arrived(b).values.joined())
            #expect(arrived == Set(accepted), "\(store) full: \(arrived) arrived, \(refused) were refused")
            print(
                "store \(store), full: \(accepted.count) records arrived, \(refused.count) were refused; \(exchanges)")
        }
    }
#endif
