#if HTTP
    import Ferry
    import FerryFleet
    import FerryHTTP
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// A server in Python that reads events by the SDK of cloudevents.io.
    private final class Sink: Sendable {
        /// The Python that has the SDK; `scripts/check http` names it.
        static let python = ProcessInfo.processInfo.environment["FERRY_HTTP_PYTHON"]

        struct Failure: Error { let text: String }

        let folder: URL
        private let process = Mutex<ChildProcess?>(nil)
        /// Its port, once it has one; the same after it was started again.
        private let number = Mutex(0)
        var port: Int { number.withLock { $0 } }
        let host = OwnAddress.text

        init() throws {
            folder = FileManager.default.temporaryDirectory.appending(path: "ferry-http-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }

        func configuration(_ scheme: String = "http", _ user: String = "") throws -> HTTPConfiguration {
            var configuration = try HTTPConfiguration("\(scheme)://\(user)\(host):\(port)/records?key=secret")
            configuration.timeout = .seconds(3)
            return configuration
        }

        func file(_ name: String) -> URL { folder.appending(path: name) }
        func set(_ name: String, _ text: String?) throws {
            if let text {
                try text.write(to: file(name), atomically: true, encoding: .utf8)
            } else {
                try FileManager.default.removeItem(at: file(name))
            }
        }
        func lines(_ name: String) -> [Substring] {
            let text = (try? String(contentsOf: file(name), encoding: .utf8)) ?? ""
            // A line that is being written is left for the next time.
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        }

        func start() async throws {
            guard let python = Self.python else { throw Failure(text: "there is no Python") }
            try? set("port", nil)
            let script = packageFolder.appending(path: "Tests/Interop/http_sink.py")
            let child = try ChildProcess(python, [script.path(), host, "\(port)", folder.path()])
            process.withLock { $0 = child }
            try await until("the server's port") {
                guard child.isRunning else { throw Failure(text: "the server ended") }
                return Int((try? String(contentsOf: file("port"), encoding: .utf8)) ?? "") != nil
            }
            let port = Int(try String(contentsOf: file("port"), encoding: .utf8)) ?? 0
            number.withLock { $0 = port }
        }

        func signal(_ signal: Int32) { process.withLock { $0?.signal(signal) } }

        func kill() async {
            signal(SIGKILL)
            let ending = process.withLock { process in
                defer { process = nil }
                return process
            }
            await ending?.ended()
        }

        /// Halts it, which has several threads; all have stopped when this returns.
        func halt() async throws {
            signal(SIGSTOP)
            let tasks = "/proc/\(process.withLock { $0?.identifier ?? 0 })/task"
            try await until("the server to halt") {
                try FileManager.default.contentsOfDirectory(atPath: tasks).allSatisfy { task in
                    let state = try String(contentsOfFile: "\(tasks)/\(task)/stat", encoding: .utf8)
                    return state.split(separator: ")").last?.hasPrefix(" T") == true
                }
            }
        }

        var deliveries: [OutletConformance.Delivery] {
            lines("heard").compactMap { line in
                let parts = line.split(separator: "|", omittingEmptySubsequences: false)
                guard parts.count == 3 else { return nil }
                let digits = Array(parts[2].utf8)
                let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                    UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
                }
                return .init(address: String(parts[0]), key: String(parts[1]), bytes: bytes)
            }
        }

        deinit {
            signal(SIGKILL)
            try? FileManager.default.removeItem(at: folder)
        }
    }

    /// The conformance kit of outlets, run with a server that another implementation of CloudEvents reads for.
    @Suite(
        .tags(.records, .recovery), .enabled(if: Sink.python != nil, "scripts/check http runs it"),
        .timeLimit(.minutes(5)))
    struct HTTPOutletTests {
        private func message(_ number: Int, _ size: Int = 3) -> OutletMessage {
            OutletMessage(
                .init(sender: "\(number)", stream: "s"), key: "\(number)/s/1",
                bytes: [UInt8](repeating: 1, count: size))
        }

        @Test func httpOutletConforms() async throws {
            let sink = try Sink()
            try await sink.start()
            let configuration = try sink.configuration()
            let rig = OutletConformance.Rig(
                open: { try await HTTPOutlet.open(configuration) }, deliveries: { sink.deliveries },
                kill: { await sink.kill() }, start: { try await sink.start() },
                halt: { try await sink.halt() }, resume: { sink.signal(SIGCONT) },
                fill: { try sink.set("is-full", "") }, drain: { try sink.set("is-full", nil) },
                refused: OutletMessage(
                    .init(sender: "large", stream: "s"), key: "large/s/0", bytes: [UInt8](repeating: 1, count: 200_000))
            )
            try await OutletConformance(rig).check()
        }

        @Test func manyGoInFewRequestsAndTheRefusedOneAlone() async throws {
            let sink = try Sink()
            try await sink.start()
            var configuration = try sink.configuration()
            configuration.timeout = .seconds(60)
            let outlet = try await HTTPOutlet.open(configuration)
            let answers = await withTaskGroup { group in
                for number in 0..<200 {
                    let message = message(number, number == 77 ? 150_000 : 3)
                    group.addTask { (number, await outlet.publish(message)) }
                }
                return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            for (number, answer) in answers {
                guard number == 77 else {
                    #expect(answer.isTaken, "\(answer)")
                    continue
                }
                #expect(!answer.isTaken && !answer.isToRepeat && answer.error?.message.contains("413") == true)
            }
            #expect(sink.deliveries.count == 199 && sink.lines("requests").count < 100)
            await outlet.close()
        }

        @Test(
            "What the server says is told, and no secret",
            arguments: [
                (401, "Look at the user, the token"), (404, "Look at the address"), (308, "It moved"),
                (500, "as it was told"),
            ])
        func refusals(_ status: Int, _ words: String) async throws {
            let sink = try Sink()
            try await sink.start()
            try sink.set("status", "\(status)")
            let outlet = try await HTTPOutlet.open(try sink.configuration("http", "ada:hidden@"))
            let answer = await outlet.publish(message(1))
            let text = try #require(answer.error?.message)
            #expect(answer.isToRepeat && text.contains("\(status)") && text.contains(words), "\(text)")
            #expect(!text.contains("secret") && !text.contains("hidden"), "\(text)")
            await outlet.close()
        }

        @Test func aTokenOpensTheServer() async throws {
            let sink = try Sink()
            try await sink.start()
            try sink.set("token", "Bearer abc")
            let unknown = try sink.configuration()
            let error = await #expect(throws: FerryError.self) { _ = try await HTTPOutlet.open(unknown) }
            #expect(error?.code == .httpRefused, "\(error as Any)")
            try sink.set("client", "abc\n")
            var configuration = unknown
            configuration.tokenFile = sink.file("client").path()
            let outlet = try await HTTPOutlet.open(configuration)
            #expect(await outlet.publish(message(1)).isTaken)
            await outlet.close()
        }

        @Test func clientCertificateOpensTLS() async throws {
            let sink = try Sink()
            try await OwnCertificate.make(in: sink.folder)
            try await sink.start()
            var configuration = try sink.configuration("https")
            configuration.authoritiesFile = sink.file("certificate.pem").path()
            configuration.certificateFile = sink.file("certificate.pem").path()
            configuration.keyFile = sink.file("key.pem").path()
            let outlet = try await HTTPOutlet.open(configuration)
            #expect(await outlet.publish(message(1)).isTaken)
            await outlet.close()
            // An authority that the client does not know.
            configuration.authoritiesFile = nil
            let unknowing = configuration
            let error = await #expect(throws: FerryError.self) { _ = try await HTTPOutlet.open(unknowing) }
            #expect(error?.code == .httpInsecure, "\(error as Any)")
        }

        @Test func missingServerIsSaid() async throws {
            let sink = try Sink()
            try await sink.start()
            let configuration = try sink.configuration()
            await sink.kill()
            let error = await #expect(throws: FerryError.self) { _ = try await HTTPOutlet.open(configuration) }
            #expect(error?.code == .httpNoServer, "\(error as Any)")
        }
    }

    @Suite(.tags(.records)) struct HTTPConfigurationTests {
        @Test func addressIsRead() throws {
            let full = try HTTPConfiguration("https://a%40b:p:q%25@host:9/x?code=1")
            #expect(full.url == "https://host:9/x?code=1" && full.publicAddress == "https://host:9/x")
            #expect(try HTTPConfiguration("http://[::1]:9").publicAddress == "http://[::1]:9")
            for wrong in [
                "", "host", "mqtt://a", "http://", "http://a:0", "http://a:x", "http://a:70000", "http://a b",
                "http://a/#x",
                "http://a\r\nX: y",
            ] {
                let error = #expect(throws: FerryError.self) { _ = try HTTPConfiguration(wrong) }
                #expect(error?.code == .invalidConfiguration, "\(wrong)")
            }
        }

        @Test(
            "What cannot be is refused before anything is sent",
            arguments: [
                { $0.timeout = .zero }, { $0.maximumBatch = 0 }, { $0.maximumInFlight = 40_000 },
                { $0.maximumRequests = 0 }, { $0.maximumBatchBytes = 0 }, { $0.contentType = "json" },
                { $0.contentType = "a/b\r\nc" }, { $0.eventType = "" }, { $0.keyFile = "a" },
                { $0.tokenFile = "/none" },
                { $0.authoritiesFile = "/none" },
            ] as [@Sendable (inout HTTPConfiguration) -> Void])
        func refused(_ change: @Sendable (inout HTTPConfiguration) -> Void) async throws {
            var configuration = try HTTPConfiguration("http://127.0.0.1:1")
            change(&configuration)
            let wrong = configuration
            let error = await #expect(throws: FerryError.self) { _ = try await HTTPOutlet.open(wrong) }
            #expect(error?.code == .invalidConfiguration, "\(error as Any)")
        }
    }
#endif
