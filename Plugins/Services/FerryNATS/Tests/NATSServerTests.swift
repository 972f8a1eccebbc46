#if NATS
    import Ferry
    @testable import FerryNATS
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// Everything that needs a server: each test has one of its own.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct NATSServerTests {
        private let stream = NATSStream("records", subjects: ["ferry.records.>"])

        /// Waits for a server as long as the test may last.
        private func configuration(_ address: String) -> NATSConfiguration {
            var configuration = NATSConfiguration(servers: [address])
            configuration.reconnectDelay = .milliseconds(20)
            configuration.connectTimeout = .unreached
            configuration.requestTimeout = .unreached
            return configuration
        }

        private func connect(_ server: NATSServer) async throws -> NATSConnection {
            try await NATSConnection.connect(configuration(server.url))
        }

        private func publication(
            _ number: Int, after predecessor: UInt64? = nil, behind follows: Int? = nil
        ) -> NATSPublisher.Publication {
            NATSPublisher.Publication(
                NATSMessage(
                    "ferry.records.a", headers: [NATSMessage.Header("Ferry-Peer", "ä \(number)")],
                    bytes: Array("\(number)".utf8)),
                id: "a/\(number)", predecessor: predecessor, follows: follows.map { "a/\($0)" })
        }

        private func code<Value>(_ body: () async throws -> Value) async -> FerryError.Code? {
            do { _ = try await body() } catch { return (error as? FerryError)?.code }
            return nil
        }

        @Test func whatIsPublishedIsThereOnceAndInOrder() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            let publisher = try await NATSPublisher(
                connection, to: "records", maximumInFlight: 8, timeout: .unreached)
            let receipts = try await withThrowingTaskGroup(of: NATSPublisher.Receipt.self) { group in
                for number in 0..<100 {
                    group.addTask { try await publisher.publish(publication(number)) }
                }
                return try await group.reduce(into: [NATSPublisher.Receipt]()) { $0.append($1) }
            }
            #expect(Set(receipts.map(\.sequence)) == Set(1...100))
            #expect(receipts.allSatisfy { !$0.isDuplicate })
            #expect(publisher.inFlight == 0)
            let again = try await publisher.publish(publication(7))
            #expect(again.isDuplicate && (1...100).contains(again.sequence))
            #expect(try await connection.state(of: "records").messages == 100)

            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var deliveries: [NATSConsumer.Delivery] = []
            while deliveries.count < 100 {
                let some = try await consumer.take(atMost: 40, within: .unreached)
                try #require(!some.isEmpty)
                for delivery in some { try await consumer.acknowledge(delivery) }
                deliveries += some
            }
            #expect(deliveries.map(\.sequence) == Array(1...100))
            for delivery in deliveries {
                let text = String(decoding: delivery.message.bytes, as: UTF8.self)
                #expect(delivery.message["Nats-Msg-Id"] == "a/\(text)")
                #expect(delivery.message["Ferry-Peer"] == "ä \(text)")
                #expect(delivery.message.subject == "ferry.records.a")
            }
            #expect(try await consumer.take(atMost: 1, within: .milliseconds(100)).isEmpty)
            await connection.close()
        }

        @Test func aMessageAfterAnotherThanTheLastIsRefused() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            let first = try await publisher.publish(publication(1, after: 0))
            let second = try await publisher.publish(publication(2, after: first.sequence))
            #expect(await code { try await publisher.publish(publication(3, after: first.sequence)) } == .natsConflict)
            #expect(await code { try await publisher.publish(publication(4, after: 0)) } == .natsConflict)
            // What is there already is answered, whatever came after it, where no place is named, which newer servers look at first.
            #expect(try await publisher.publish(publication(1)).isDuplicate)
            #expect(try await publisher.publish(publication(3, after: second.sequence)).sequence == 3)
        }

        @Test func aMessageBehindAnotherThanTheStreamsLastIsRefused() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            #expect(await code { try await publisher.publish(publication(1, behind: 7)) } == .natsConflict)
            _ = try await publisher.publish(publication(1))
            #expect(try await publisher.publish(publication(2, behind: 1)).sequence == 2)
            #expect(await code { try await publisher.publish(publication(3, behind: 1)) } == .natsConflict)
            // Of the whole stream, whatever the subject.
            _ = try await publisher.publish(
                NATSPublisher.Publication(NATSMessage("ferry.records.b", bytes: []), id: "b/1"))
            #expect(await code { try await publisher.publish(publication(3, behind: 2)) } == .natsConflict)
            #expect(try await publisher.publish(publication(3)).sequence == 4)
            // Several are on their way, and one of them cannot be taken: none of those behind it is.
            let orders = [publication(4, behind: 3), publication(5, after: 1, behind: 4), publication(6, behind: 5)]
            let (ends, tell) = AsyncStream<NATSPublisher.Ended>.makeStream()
            let waiting = Mutex(orders.enumerated().map { NATSPublisher.Order(token: UInt64($0), $1) })
            let feeding = try await NATSPublisher(connection, to: "records", timeout: .unreached) { ended, orders in
                for end in ended { tell.yield(end) }
                orders += waiting.withLock { waiting in
                    defer { waiting = [] }
                    return waiting
                }
            }
            feeding.turn()
            var results: [UInt64: FerryError.Code?] = [:]
            for await end in ends {
                do throws(FerryError) {
                    _ = try end.result.get()
                    results.updateValue(nil, forKey: end.token)
                } catch { results.updateValue(error.code, forKey: end.token) }
                if results.count == 3 { break }
            }
            #expect(results == [0: nil, 1: .natsConflict, 2: .natsConflict])
            await connection.close()
        }

        @Test func aFullStreamRefusesAndLosesNothing() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            var small = stream
            small.maximumMessages = 3
            try await connection.open(small)
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            for number in 0..<3 { _ = try await publisher.publish(publication(number)) }
            #expect(await code { try await publisher.publish(publication(3)) } == .natsStreamFull)
            #expect(try await connection.state(of: "records").messages == 3)
            try await connection.publish(NATSMessage("$JS.API.STREAM.PURGE.records", bytes: []))
            while try await connection.state(of: "records").messages > 0 {}
            // Nobody has answered for it, so that it is no duplicate.
            let receipt = try await publisher.publish(publication(3))
            #expect(!receipt.isDuplicate)
        }

        @Test func noMoreThanAsManyAsMayBeAreOnTheirWay() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            let results = AsyncStream<(UInt64, FerryError.Code?)>.makeStream()
            let waiting = Mutex((0..<3).map { NATSPublisher.Order(token: UInt64($0), publication($0)) })
            let feed: NATSPublisher.Feed = { ended, orders in
                for end in ended {
                    do throws(FerryError) {
                        _ = try end.result.get()
                        results.continuation.yield((end.token, nil))
                    } catch { results.continuation.yield((end.token, error.code)) }
                }
                orders += waiting.withLock { waiting in
                    defer { waiting = [] }
                    return waiting
                }
            }
            let publisher = try await NATSPublisher(
                connection, to: "records", maximumInFlight: 2, timeout: .unreached, feed: feed)
            server.signal(SIGSTOP)
            publisher.turn()
            var ends = results.stream.makeAsyncIterator()
            let refused = await ends.next()
            #expect(refused?.0 == 2 && refused?.1 == .queueFull)
            #expect(publisher.inFlight == 2)
            server.signal(SIGCONT)
            var tokens: Set<UInt64> = []
            for _ in 0..<2 {
                let end = await ends.next()
                #expect(end?.1 == nil)
                if let end { tokens.insert(end.0) }
            }
            #expect(tokens == [0, 1])
            #expect(publisher.inFlight == 0)
        }

        @Test func anAnswerHasItsDeadline() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .milliseconds(300))
            server.signal(SIGSTOP)
            #expect(await code { try await publisher.publish(publication(1)) } == .timedOut)
            #expect(publisher.inFlight == 0)
            server.signal(SIGCONT)
            // The answer that comes late is nobody's.
            let patient = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            #expect(try await patient.publish(publication(2)).sequence == 2)
        }

        @Test func whereThereIsNoStreamNobodyAnswers() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            #expect(await code { try await publisher.publish(publication(1)) } == .natsNotReady)
            #expect(publisher.inFlight == 0)
        }

        @Test func aServerThatIsKilledIsMetAgain() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await connection.open(stream)
            var watch = NATSServerWatch()
            var events = connection.events().makeAsyncIterator()
            let publisher = try await NATSPublisher(connection, to: "records", timeout: .unreached)
            let receipt = try await publisher.publish(publication(1))
            watch.answered(receipt.sequence)
            #expect(watch.look(await connection.serverID(), try await connection.state(of: "records")) == .steady)
            let id = await connection.serverID()
            #expect(!id.isEmpty && connection.isConnected && connection.maximumPayload == 1 << 20)
            await server.kill()
            let lost = await events.next()
            #expect(lost == .disconnected)
            #expect(!connection.isConnected)
            try await server.start()
            guard case .reconnected(let other) = await events.next() else {
                Issue.record("no event of connecting again")
                return
            }
            #expect(other != id)
            #expect(await connection.serverID() == other)
            // JetStream needs a moment more than the port.
            var finding = NATSServerWatch.Finding.steady
            while finding == .steady {
                guard let state = try? await connection.state(of: "records") else { continue }
                finding = watch.look(await connection.serverID(), state)
            }
            #expect(finding == .mayHaveLost("the server has restarted, or is another one"))
            #expect(try await publisher.publish(publication(1)).isDuplicate)
            #expect(try await publisher.publish(publication(2)).sequence == 2)
            await connection.close()
            let closed = await events.next()
            #expect(closed == .closed(reason: "This side closed the connection."))
            let nothing = await events.next()
            #expect(nothing == nil)
            #expect(await code { try await publisher.publish(publication(3)) } == .closed)
            #expect(await code { try await connection.state(of: "records") } == .closed)
        }

        @Test func whatIsInTheWayIsSaid() async throws {
            let server = try NATSServer("authorization { user: ada, password: secret, timeout: 3600 }")
            try await server.start()
            for (address, expected) in [
                ("nats://127.0.0.1:\(server.port)", FerryError.Code.natsRefused),
                ("nats://ada:wrong@127.0.0.1:\(server.port)", .natsRefused),
                ("nats://127.0.0.1:1", .natsNoServer),
            ] {
                do {
                    _ = try await NATSConnection.connect(configuration(address))
                    Issue.record("\(address) was connected to")
                } catch {
                    #expect(error.code == expected, "\(error)")
                    #expect(!error.message.contains("wrong@") && error.message.contains("127.0.0.1"))
                }
            }
            var credentials = configuration(server.url)
            credentials.credentialsFile = "/nowhere/ada.creds"
            do {
                _ = try await NATSConnection.connect(credentials)
                Issue.record("no credentials were needed")
            } catch {
                #expect("\(error.message)".contains("127.0.0.1") || error.message.contains("/nowhere/ada.creds"))
            }
            let connection = try await NATSConnection.connect(
                configuration("nats://ada:secret@127.0.0.1:\(server.port)"))
            #expect(connection.isConnected)
            #expect(await code { try await connection.open(stream, creates: false) } == .natsNotFound)
        }

        @Test func tlsNeedsAnAuthorityThatIsTrusted() async throws {
            let server = try NATSServer(
                "tls { cert_file: \"FOLDER/certificate.pem\", key_file: \"FOLDER/key.pem\", timeout: 3600 }")
            try await server.makeCertificate()
            try await server.start()
            var secure = configuration("tls://localhost:\(server.port)")
            do {
                _ = try await NATSConnection.connect(secure)
                Issue.record("a certificate that nobody has signed was trusted")
            } catch {
                #expect(error.code == .natsInsecure, "\(error)")
            }
            secure.authoritiesFile = server.certificate
            let connection = try await NATSConnection.connect(secure)
            try await connection.open(stream)
            await connection.close()
        }

        @Test func aBucketLetsOneHaveAKey() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            let bucket = try await NATSBucket.open("leases", expiry: .seconds(3600), on: connection)
            #expect(try await bucket.entry("a.b") == nil)
            let first = try await bucket.create("a.b", Array("one".utf8))
            #expect(await code { try await bucket.create("a.b", Array("two".utf8)) } == .natsConflict)
            let second = try await bucket.update("a.b", Array("three".utf8), from: first)
            #expect(second > first)
            #expect(await code { try await bucket.update("a.b", [], from: first) } == .natsConflict)
            #expect(
                try await bucket.entry("a.b")
                    == NATSBucket.Entry(key: "a.b", bytes: Array("three".utf8), revision: second))
            #expect(try await bucket.keys() == ["a.b"])
            #expect(await code { try await bucket.create("a b", []) } == .invalidConfiguration)
            try await bucket.remove("a.b")
            #expect(try await bucket.create("a.b", []) > second)
            // It is gone when it is not renewed, and another can have it, with a higher revision.
            let brief = try await NATSBucket.open("brief", expiry: .seconds(1), on: connection)
            let third = try await brief.create("a", [])
            try await until("the end of the entry") { try await brief.entry("a") == nil }
            #expect(try await brief.create("a", []) > third)
            #expect(
                await code { try await NATSBucket.open("leases", expiry: .seconds(3601), on: connection) }
                    == .natsWrongShape)
            // A bucket is a stream, and this one keeps what it has.
            try await makePlainBucket("forever", nanoseconds: 0, on: connection)
            #expect(
                await code { try await NATSBucket.open("forever", expiry: .seconds(2), on: connection) }
                    == .natsWrongShape)
        }

        /// A bucket as a tool makes it that knows nothing of direct reading, whose entries last so long; 0 for always.
        private func makePlainBucket(_ name: String, nanoseconds: Int, on connection: NATSConnection) async throws {
            let shape = """
                {"name":"KV_\(name)","subjects":["$KV.\(name).>"],"max_msgs_per_subject":1,"discard":"new","storage":"file",
                "retention":"limits","num_replicas":1,"max_age":\(nanoseconds),"max_msgs":-1,"max_bytes":-1,"max_consumers":-1,
                "allow_rollup_hdrs":true,"deny_delete":true}
                """
            try await connection.publish(NATSMessage("$JS.API.STREAM.CREATE.KV_\(name)", bytes: Array(shape.utf8)))
            while await code({ try await connection.state(of: "KV_\(name)") }) == .natsNotFound {}
        }

        @Test func aBucketMayBeReadByItsLeaderOnly() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            try await makePlainBucket("old", nanoseconds: 3_600_000_000_000, on: connection)
            let bucket = try await NATSBucket.open("old", expiry: .seconds(3600), on: connection)
            let first = try await bucket.create("a", Array("one".utf8))
            #expect(try await bucket.entry("a")?.revision == first)
            #expect(await code { try await bucket.create("a", []) } == .natsConflict)
            try await bucket.remove("a")
            #expect(try await bucket.entry("a") == nil)
            #expect(try await bucket.create("a", []) > first)
        }

        /// Requests stood in a row: behind one that was left without an answer no lease was renewed.
        @Test func aRequestWaitsForNoOther() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            let bucket = try await NATSBucket.open("leases", expiry: .seconds(3600), on: connection)
            // Somebody listens, and answers nothing.
            let heard = try await connection.messages(to: "mute")
            let ended = Ended()
            let mute = (0..<40).map { _ in
                Task { () -> FerryError.Code? in
                    defer { ended.count.add(1, ordering: .relaxed) }
                    do throws(FerryError) {
                        _ = try await connection.request(NATSMessage("mute", bytes: []), "Nothing")
                        return nil
                    } catch { return error.code }
                }
            }
            var requests = heard.makeAsyncIterator()
            for _ in mute { _ = await requests.next() }
            var revision = try await bucket.create("a", [])
            for number: UInt8 in 0..<20 { revision = try await bucket.update("a", [number], from: revision) }
            #expect(try await bucket.entry("a")?.bytes == [19])
            #expect(ended.count.load(ordering: .relaxed) == 0)
            await connection.close()
            for each in mute { #expect(await each.value == .closed) }
            #expect(await code { try await bucket.entry("a") } == .closed)
        }

        private final class Ended: Sendable { let count = Atomic(0) }

        @Test func aRequestHasItsTime() async throws {
            let server = try NATSServer()
            try await server.start()
            var brief = configuration(server.url)
            brief.requestTimeout = .milliseconds(200)
            let connection = try await NATSConnection.connect(brief)
            let heard = try await connection.messages(to: "mute")
            #expect(await code { try await connection.request(NATSMessage("mute", bytes: []), "It") } == .timedOut)
            withExtendedLifetime(heard) {}
            let patient = try await connect(server)
            #expect(await code { try await patient.request(NATSMessage("nobody", bytes: []), "It") } == .natsNotReady)
        }

        /// libnats holds its lock while it connects: a gateway that asked it stood still with it, and let go of its peers late.
        @Test func whetherThereIsAConnectionIsToldAtOnce() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            #expect(connection.isConnected)
            await server.kill()
            // At its port somebody takes connections and says nothing, for as long as setting one up may take.
            let silent = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var (yes, place) = (Int32(1), sockaddr_in())
            setsockopt(silent, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            place.sin_family = sa_family_t(AF_INET)
            place.sin_port = in_port_t(server.port).bigEndian
            place.sin_addr.s_addr = inet_addr("127.0.0.1")
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafePointer(to: &place) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(silent, $0, size) == 0 }
            }
            try #require(isBound && listen(silent, 8) == 0)
            var polled = pollfd(fd: silent, events: Int16(POLLIN), revents: 0)
            try await until("a connection at its port") { poll(&polled, 1, 0) != 0 }
            // Setting up takes longer here than the test may last.
            for _ in 0..<50 { #expect(!connection.isConnected) }
            // The connection's end waits for that.
            close(silent)
            await connection.close()
        }

        @Test func plainMessagesReachWhoListens() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            let messages = try await connection.messages(to: "sightings.*")
            try await connection.flush()
            let sent = NATSMessage("sightings.a", headers: [NATSMessage.Header("n", "1")], bytes: [0, 255])
            try await connection.publish(sent)
            var iterator = messages.makeAsyncIterator()
            let received = await iterator.next()
            #expect(received == sent)
            for subject in ["", "a b", "a..b", "a.*", "a\n"] {
                #expect(
                    await code { try await connection.publish(NATSMessage(subject, bytes: [])) }
                        == .invalidConfiguration)
            }
            // As many of them as there are arrive, each with its own value.
            let headers = [("a", "b: c"), ("d~", "%"), ("e", "ä"), ("E", "f")].map(NATSMessage.Header.init)
            try await connection.publish(NATSMessage("sightings.b", headers: headers, bytes: []))
            #expect(await iterator.next().map { Set($0.headers) } == Set(headers))
            for (name, value) in [
                ("a", "b\r\nc: d"), ("a", ""), ("a", " b"), ("a", "b "), ("a", " "), ("", "b"), ("a b", "c"),
                ("a:", "b"),
                ("ä", "b"),
            ] {
                let message = NATSMessage("a", headers: [NATSMessage.Header(name, value)], bytes: [])
                #expect(
                    await code { try await connection.publish(message) } == .invalidConfiguration, "\(name): \(value)")
            }
        }

        @Test func aConnectionForOneDeedIsClosedHoweverThatEnds() async throws {
            let server = try NATSServer()
            try await server.start()
            let (stream, wanted) = (stream, configuration(server.url))
            let connection = try await NATSConnection.with(wanted) { connection throws(FerryError) in
                try await connection.open(stream)
                return connection
            }
            #expect(!connection.isConnected)
            #expect(await code { try await connection.flush() } == .closed)
            var other: NATSConnection?
            do throws(FerryError) {
                try await NATSConnection.with(wanted) { connection throws(FerryError) in
                    other = connection
                    throw FerryError(.queueFull, "enough")
                }
            } catch { #expect(error.code == .queueFull) }
            #expect(other?.isConnected == false)
        }
    }
#endif
