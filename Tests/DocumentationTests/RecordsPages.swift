// What Documentation/Records.md, Documentation/Gateway.md and Documentation/Commands.md show.

#if Records
    import Ferry
    import FerryRecords
    import GRDB

    private func keep(_ celsius: Double, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        let store = try RecordStore.open("readings.ferry")
        try await store.append(Array("21.5".utf8), to: "collector", stream: "temperature")
        try await store.exchange(over: channel, with: "collector")

        for try await record in store.inbox {
            try await record.done { database in  // GRDB's Database: one transaction with the app's own tables
                try database.execute(sql: "INSERT INTO reading VALUES (?)", arguments: [celsius])
            }
        }
    }

    private func relay(_ order: [UInt8], _ store: RecordStore) async throws {
        let record = RelayedRecord(sequence: 7, time: 1_795_000_000_000_000_000, bytes: order)
        try await store.relay([record], from: "orders", stream: "press", to: "press-7")
    }

    private func answer(_ store: RecordStore, _ setBrightness: @escaping @Sendable ([UInt8]) async throws -> Void)
        async throws
    {
        let desk = CommandDesk(
            store,
            [
                "restart": .once { _ in Array("restarting".utf8) },
                "brightness": .repeatable { command in
                    try await setBrightness(command.body)
                    return []
                },
            ])
        for try await record in store.inbox {
            if try await desk.take(record) { continue }
            try await record.done()  // a record of the app's own
        }
    }

    private func serve(_ store: RecordStore, over transport: any Transport) async throws {
        let hub = try RecordHub(store, over: transport)
        hub.onInterruption { print($0?.message ?? "Peers can come again.") }
        try await hub.run()  // until its task is cancelled
    }
#endif

#if Records && NATS
    import FerryGateway
    import FerryNATS

    private func consume(_ upsert: (String?, [UInt8]) async throws -> Void) async throws {
        let connection = try await NATSConnection.connect(NATSConfiguration(servers: ["nats://localhost:4222"]))
        let consumer = try await NATSConsumer.open("ferry", subject: "ferry.records.>", name: "table", on: connection)
        while true {
            for delivery in try await consumer.take(atMost: 100, within: .seconds(5)) {
                try await upsert(delivery.message["Nats-Msg-Id"], delivery.message.bytes)
                try await consumer.acknowledge(delivery)
            }
        }
    }

    private func command() async throws {
        let connection = try await NATSConnection.connect(NATSConfiguration(servers: ["nats://localhost:4222"]))
        let orders = try await NATSPublisher(connection, to: "ferry-down")
        let message = NATSMessage("ferry.commands.press-7.orders", bytes: Array("stop".utf8))
        _ = try await orders.publish(NATSPublisher.Publication(message, id: "order-4711"))
    }

    private func restart() async throws {
        let configuration = PeerCommands.Configuration(servers: ["nats://localhost:4222"])
        let answer = try await PeerCommands.with(configuration) { commands throws(FerryError) in
            try await commands.call("restart", of: "press-7", within: .seconds(30))
        }
        print(answer.outcome, answer.text)
    }

    private func publish(_ store: RecordStore) async throws {
        let gateway = try Gateway(store, Gateway.Configuration(servers: ["nats://localhost:4222"], name: "gateway-1"))
        try await gateway.run()
    }
#endif

#if Records && Observability
    import FerryObservability

    private func appendTraced(_ bytes: [UInt8], to store: RecordStore, _ tracing: RecordTracing) async throws
        -> RecordID
    {
        let id = try await tracing.append { () async throws(FerryError) in
            try await store.append(bytes, to: "collector")
        }
        return id
    }
#endif

#if Records && NATS && Observability
    import Logging

    func observed(_ store: RecordStore, _ configuration: Gateway.Configuration) throws -> Gateway {
        let observer = GatewayObservers([
            LoggingObserver(Logger(label: "gateway"), gateway: configuration.name),
            MetricsObserver(),
            TracingObserver(gateway: configuration.name, sampling: .oneIn(100)),
        ])
        return try Gateway(store, configuration, observer: observer)
    }
#endif
