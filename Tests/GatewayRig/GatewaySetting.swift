#if NATS && Records
    import Ferry
    import FerryBluetooth
    package import FerryGateway
    import FerryLoopback
    package import FerryNATS
    package import FerryRecords
    import Foundation
    package import TestSupport

    extension NATSServer {
        /// A connection that waits for the server as long as the test may last.
        package func connect() async throws -> NATSConnection {
            var configuration = NATSConfiguration(servers: [url])
            configuration.connectTimeout = .unreached
            configuration.requestTimeout = .unreached
            return try await NATSConnection.connect(configuration)
        }
    }

    /// A peer, a gateway's store and a server, with their files in a folder that goes with the test.
    package final class GatewaySetting: Sendable {
        package let server: NATSServer
        package let peer: RecordStore
        package let store: RecordStore
        private let radio = LoopbackRadio()

        package struct Failure: Error { let text: String }

        /// - Parameter change: changes the gateway's store.
        package init(_ change: (inout RecordStore.Configuration) -> Void = { _ in }) throws {
            server = try NATSServer()
            peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            var configuration = RecordStore.Configuration()
            configuration.greeting = configuration.patience
            configuration.largestRecord = 1000
            change(&configuration)
            store = try RecordStore.open(server.folder.appending(path: "gateway").path(), configuration: configuration)
        }

        package func configuration() -> Gateway.Configuration {
            var configuration = Gateway.Configuration(servers: [server.url], name: "g1", stream: "records")
            configuration.servers.reconnectDelay = .milliseconds(20)
            configuration.servers.connectTimeout = .unreached
            // A request that a killed server has taken with it is made again after that.
            configuration.servers.requestTimeout = .seconds(30)
            configuration.retention = .milliseconds(500)
            configuration.lookInterval = .milliseconds(50)
            // What was on its way when the server was killed is waited for so long, and published again.
            configuration.patience = .seconds(2)
            return configuration
        }

        /// Appends numbers at the peer, each to one of three streams.
        package func append(_ numbers: Range<Int>) async throws {
            for number in numbers {
                try await peer.append(Array("\(number)".utf8), to: "gateway", stream: "s\(number % 3)")
            }
        }

        /// Carries what waits in the peer's store to the gateway's.
        package func collect() async throws {
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let near = GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
            let far = GATTTransport(adapter: radio.makeAdapter(), configuration: layout)
            let listener = try await far.listen()
            defer { listener.close() }
            async let connecting = near.connect(timeout: .unreached)
            var links = listener.links.makeAsyncIterator()
            guard let other = await links.next() else { throw Failure(text: "nobody has come") }
            let link = try await connecting
            let channels = try (
                MessageChannel(over: link, codec: BytesCodec()), MessageChannel(over: other, codec: BytesCodec())
            )
            async let sent = peer.exchange(over: channels.0, with: "gateway")
            async let received = store.exchange(over: channels.1, with: "ada")
            try await peer.drained("gateway", within: .unreached)
            try await peer.endExchange(with: "gateway")
            _ = try? await (sent, received)
        }

        package func connect() async throws -> NATSConnection { try await server.connect() }

        /// What the stream has, until it has so many names.
        package static func deliveries(
            _ connection: NATSConnection, _ count: Int
        ) async throws -> [NATSConsumer.Delivery] {
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var names: Set<String> = [], all: [NATSConsumer.Delivery] = []
            while names.count < count {
                for delivery in try await consumer.take(atMost: 100, within: .seconds(1)) {
                    try await consumer.acknowledge(delivery)
                    guard let name = delivery.message["Nats-Msg-Id"] else { throw Failure(text: "one has no name") }
                    names.insert(name)
                    all.append(delivery)
                }
            }
            return all
        }

        /// A consumer's table: what the stream has, upserted by name; and the numbers of each stream in the order of arrival.
        package static func table(_ connection: NATSConnection, _ count: Int) async throws -> [String: [Int]] {
            var names: Set<String> = [], numbers: [String: [Int]] = [:]
            for delivery in try await deliveries(connection, count) {
                guard names.insert(delivery.message["Nats-Msg-Id"] ?? "").inserted else { continue }
                guard let stream = delivery.message["Ferry-Stream"],
                    let number = Int(String(decoding: delivery.message.bytes, as: UTF8.self))
                else { throw Failure(text: "no stream, or no number: \(delivery.message)") }
                numbers[stream, default: []].append(number)
            }
            return numbers
        }

        package static func expected(_ range: Range<Int>) -> [String: [Int]] {
            Dictionary(grouping: range) { "s\($0 % 3)" }
        }

        package func close() async {
            await peer.close()
            await store.close()
        }
    }
#endif
