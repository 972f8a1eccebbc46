#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import FerryTransports
    import Foundation

    /// `ferry gateway`: collects the records of peers, and publishes them to a NATS JetStream stream.
    struct GatewayCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "gateway",
            abstract: "Collects records of peers, and publishes them to a NATS JetStream stream.",
            discussion: """
                Peers come over the transport, as ferry send --store does. What they send is in the store before they hear of \
                it, and leaves it some minutes after the stream has it. While no server is there, records wait in the store, and \
                peers when that is full. Documentation/Gateway.md tells consumers what they get.

                Ends with 0 after Ctrl-C or SIGTERM, 1 when something is in the way, 64 for wrong usage.
                """)

        @Option(help: ArgumentHelp("A JSON file with what the options say, and more.", valueName: "file"))
        var config: String?
        @Option(help: "What peers come over, such as unix:/run/ferry or bluez.") var transport: String?
        @Option(help: ArgumentHelp("The store that keeps records; made when it is not there.", valueName: "file"))
        var store: String?
        @Option(help: ArgumentHelp("A server, nats://HOST:4222; once for each of a cluster.", valueName: "address"))
        var nats: [String] = []
        @Option(help: ArgumentHelp("A NATS credentials file.", valueName: "file")) var credentials: String?
        @Option(help: "The stream's name. (default: ferry)") var stream: String?
        @Option(help: "What subjects begin with. (default: ferry.records)") var prefix: String?
        @Option(help: "The gateway's name. (default: the host's)") var name: String?
        @Flag(help: "Look whether everything is as it must be, change nothing, and end.") var check = false

        func run() async throws {
            do { try await serve() } catch let error as FerryError { throw CommandFailure(error.message) }
        }

        /// What the file says, and over it what the options say.
        func settings() throws -> GatewaySettings {
            var settings = try config.map(GatewaySettings.read) ?? GatewaySettings()
            settings.transport = transport ?? settings.transport
            settings.store = store ?? settings.store
            if !nats.isEmpty { settings.nats = nats }
            settings.credentials = credentials ?? settings.credentials
            settings.stream = stream ?? settings.stream
            settings.prefix = prefix ?? settings.prefix
            settings.name = name ?? settings.name
            return settings
        }

        private func serve() async throws {
            let settings = try settings()
            let configuration = try settings.gateway()
            let interval = try settings.status()
            guard let transport = settings.transport else {
                throw CommandFailure("No transport is named. Give --transport, or transport in the configuration.")
            }
            guard let path = settings.store else {
                throw CommandFailure("No store is named. Give --store FILE, or store in the configuration.")
            }
            let named: NamedTransport
            do { named = try TransferOptions.parse(transport) } catch { throw CommandFailure("\(error)") }
            var bounds = RecordStore.Configuration()
            bounds.largestRecord = settings.largestRecord ?? 1_000_000
            bounds.inboxCapacity = 64 << 20
            var slots = RecordHub.Configuration()
            slots.slots = settings.slots ?? 32
            if check { return try await look(configuration, bounds) }
            let (hubBounds, storeBounds) = (slots, bounds)
            let (result, signal) = await Interruptible.run(grace: 10) {
                let store = try RecordStore.open(path, configuration: storeBounds)
                let result: Result<Void, any Error>
                do {
                    let gateway = try Gateway(store, configuration)
                    let hub = try RecordHub(
                        store, over: try TransferOptions.open(named, "gateway"), configuration: hubBounds)
                    result = .success(try await Self.run(gateway, hub, interval))
                } catch { result = .failure(error) }
                await store.close()
                try result.get()
            }
            guard signal == nil else { return say("ended; what is not published waits in \(path)") }
            try result.get()
        }

        private func look(_ configuration: Gateway.Configuration, _ bounds: RecordStore.Configuration) async throws {
            let state = try await Gateway.check(configuration, largestRecord: bounds.largestRecord)
            guard let state else {
                return say("no stream \(configuration.stream.name) yet; it is made when the gateway begins")
            }
            say("stream \(configuration.stream.name) is as it must be, and has \(state.messages) messages")
        }

        private static func run(_ gateway: Gateway, _ hub: RecordHub, _ interval: Duration) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await gateway.run() }
                group.addTask { try await hub.run() }
                group.addTask {
                    var trouble: String?
                    while true {
                        let status = try await gateway.status()
                        if let told = status.trouble, told != trouble { say(told) }
                        trouble = status.trouble
                        say(line(status))
                        try await Task.sleep(for: interval)
                    }
                }
                defer { group.cancelAll() }
                try await group.next()
            }
        }

        static func line(_ status: Gateway.Status) -> String {
            "\(status.isConnected ? "connected" : "not connected"), \(status.published) published (\(status.duplicates) were there), "
                + "\(status.kept) kept, \(status.waiting) in the store"
        }
    }

    /// A line at once, also into a pipe.
    private func say(_ text: String) {
        let line = Array((text + "\n").utf8)
        _ = line.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
#else
    import ArgumentParser

    /// What a build without the traits says.
    struct GatewayCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "gateway",
            abstract:
                "Collects records of peers, and publishes them to a NATS JetStream stream (traits Records and NATS).")

        @Argument(parsing: .captureForPassthrough) var words: [String] = []

        func run() throws {
            throw ValidationError(
                "Gateways are not part of this build. Install libsqlite3-dev and libnats-dev, and build with their traits: swift run "
                    + "--traits Records,NATS ferry gateway ...")
        }
    }
#endif
