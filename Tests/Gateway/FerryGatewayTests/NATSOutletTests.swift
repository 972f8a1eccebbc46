#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// The conformance kit of outlets, run with a real nats-server.
    @Suite(.tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct NATSOutletTests {
        /// A server with a small stream, and its only consumer.
        private final class Setting: Sendable {
            let server: NATSServer
            private let taken = Mutex<[OutletConformance.Delivery]>([])

            init() throws { server = try NATSServer() }

            var stream: NATSStream {
                var stream = NATSStream("out", subjects: ["out.>"])
                stream.maximumMessages = 500
                return stream
            }

            var configuration: NATSConfiguration {
                var configuration = NATSConfiguration(servers: [server.url])
                configuration.reconnectDelay = .milliseconds(20)
                configuration.connectTimeout = .unreached
                configuration.requestTimeout = .unreached
                return configuration
            }

            /// Takes what is in the stream, and returns all that was ever taken.
            func deliveries() async throws -> [OutletConformance.Delivery] {
                let connection = try await NATSConnection.connect(configuration)
                let consumer = try await NATSConsumer.open("out", subject: "out.>", name: "kit", on: connection)
                while try await connection.state(of: "out").messages > 0 {
                    let some = try await consumer.take(atMost: 200, within: .milliseconds(50))
                    guard !some.isEmpty else { break }
                    for delivery in some {
                        try await consumer.acknowledge(delivery)
                        let message = delivery.message
                        let key = message["Nats-Msg-Id"] ?? ""
                        taken.withLock {
                            $0.append(.init(address: message.subject, key: key, bytes: message.bytes))
                        }
                    }
                }
                await connection.close()
                return taken.withLock { $0 }
            }

            /// Publishes until the stream has no room.
            func fill() async throws {
                let connection = try await NATSConnection.connect(configuration)
                let publisher = try await NATSPublisher(connection, to: "out", timeout: .unreached)
                for number in 0... {
                    let filler = NATSPublisher.Publication(
                        NATSMessage("out.filler.s", bytes: [1]), id: "filler/\(number)")
                    do { _ = try await publisher.publish(filler) } catch {
                        guard error.code == .natsStreamFull else { throw error }
                        break
                    }
                }
                await connection.close()
            }

            /// Takes what is there, and makes room.
            func drain() async throws {
                _ = try await deliveries()
                let connection = try await NATSConnection.connect(configuration)
                try await connection.publish(NATSMessage("$JS.API.STREAM.PURGE.out", bytes: []))
                try await until("an empty stream") { try await connection.state(of: "out").messages == 0 }
                await connection.close()
            }

            var rig: OutletConformance.Rig {
                OutletConformance.Rig(
                    open: { [self] in
                        try await NATSOutlet.open(configuration, stream: stream, prefix: "out", timeout: .seconds(3))
                    },
                    deliveries: { [self] in try await deliveries() }, kill: { [self] in await server.kill() },
                    start: { [self] in try await server.start() }, halt: { [self] in server.signal(SIGSTOP) },
                    resume: { [self] in server.signal(SIGCONT) }, fill: { [self] in try await fill() },
                    drain: { [self] in try await drain() },
                    refused: OutletMessage(
                        .init(sender: "large", stream: "s"), key: "large/s/0",
                        bytes: [UInt8](repeating: 1, count: 2 << 20)))
            }
        }

        @Test func natsOutletConforms() async throws {
            let setting = try Setting()
            try await setting.server.start()
            try await OutletConformance(setting.rig).check()
        }

        @Test func outletWithoutRoomAnswersFullAtOnce() async throws {
            let setting = try Setting()
            try await setting.server.start()
            let outlet = try await NATSOutlet.open(
                setting.configuration, stream: setting.stream, prefix: "out", maximumInFlight: 1, timeout: .unreached)
            setting.server.signal(SIGSTOP)
            let message = OutletMessage(.init(sender: "a", stream: "s"), key: "a/s/1", bytes: [1])
            let answers = AsyncStream<OutletAnswer>.makeStream()
            for _ in 0..<2 {
                Task { answers.continuation.yield(await outlet.publish(message)) }
            }
            // One of the two is on its way until the server goes on.
            var answer = answers.stream.makeAsyncIterator()
            let first = try #require(await answer.next())
            guard case .full = first else {
                Issue.record("\(first)")
                return
            }
            setting.server.signal(SIGCONT)
            #expect(await answer.next()?.isTaken == true)
            await outlet.close()
        }
    }
#endif
