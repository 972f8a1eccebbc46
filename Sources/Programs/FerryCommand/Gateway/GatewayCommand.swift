#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import FerryTransports
    import Foundation

    /// `ferry gateway`: collects the records of peers, and publishes them to a NATS JetStream stream.
    struct GatewayCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "gateway",
            abstract:
                "Collects records of peers, and publishes them to a NATS JetStream stream, an MQTT broker or an HTTP server.",
            discussion: """
                Peers come over the transport, as ferry send --store does. What they send is in the store before they hear of \
                it, and leaves it some minutes after the stream has it. While no server is there, records wait in the store, and \
                peers when that is full. Over a network peers prove their keys, and those of 'ferry trust' are let in. Documentation/Gateway.md tells consumers what they get.

                Ends with 0 after Ctrl-C or SIGTERM, 1 when something is in the way, 64 for wrong usage.
                """,
            subcommands: [Peers.self, Forget.self, Keys.self, Allow.self, Revoke.self])

        /// The configuration and the servers: options of the gateway and of its list of keys alike. A subcommand gets the group that
        /// the command before it has read, by its type; options that only have the same names would stay with that command.
        struct Servers: ParsableArguments {
            @Option(help: ArgumentHelp("A JSON file with what the options say, and more.", valueName: "file"))
            var config: String?
            @Option(help: ArgumentHelp("A server, nats://HOST:4222; once for each of a cluster.", valueName: "address"))
            var nats: [String] = []
            @Option(help: ArgumentHelp("A NATS credentials file.", valueName: "file")) var credentials: String?

            /// What the file says, and over it what these options say.
            func settings() throws -> GatewaySettings {
                var settings = try config.map(GatewaySettings.read) ?? GatewaySettings()
                if !nats.isEmpty { settings.nats.orNew.servers = nats }
                if let credentials { settings.nats.orNew.credentials = credentials }
                return settings
            }
        }

        @OptionGroup var servers: Servers
        @Option(help: "What peers come over, such as unix:/run/ferry or bluez.") var transport: String?
        @Option(help: ArgumentHelp("The store that keeps records; made when it is not there.", valueName: "file"))
        var store: String?
        @Option(
            help: ArgumentHelp(
                "Publish to a broker of MQTT 5 in the place of NATS, mqtt://HOST or mqtts://HOST (trait MQTT).",
                valueName: "address"))
        var mqtt: String?
        @Option(
            help: ArgumentHelp(
                "Publish to an HTTP server as CloudEvents in the place of NATS, https://HOST/PATH (trait HTTP).",
                valueName: "address"))
        var http: String?
        @Option(help: "The stream's name. (default: ferry)") var stream: String?
        @Option(help: "What subjects begin with. (default: ferry.records)") var prefix: String?
        @Option(help: "The gateway's name. (default: the host's)") var name: String?
        @Option(
            help: ArgumentHelp(
                "One of a fleet: visit the peers whose lease it has in this bucket, and no others.", valueName: "bucket"
            ))
        var fleet: String?
        @Option(
            help: ArgumentHelp(
                "Carry messages for peers from this stream; made when it is not there.", valueName: "stream"))
        var downlink: String?
        @Option(
            help: ArgumentHelp(
                "Take only peers whose keys are on the list in this bucket, which gateways share (ferry gateway allow).",
                valueName: "bucket"))
        var allow: String?
        @Option(help: ArgumentHelp("Serve figures for Prometheus there, such as 127.0.0.1:9469.", valueName: "address"))
        var metrics: String?
        @Option(
            help: ArgumentHelp(
                "Log what happens on standard error, from this level on: trace, debug, info, notice, warning, error (trait Observability).",
                valueName: "level"))
        var logLevel: String?
        @Option(
            help: ArgumentHelp("How lines of the log are written: text, or json for programs.", valueName: "format"))
        var logFormat: String?
        @OptionGroup(title: "Trust") var trust: TrustOptions
        @Flag(help: "Look whether everything is as it must be, change nothing, and end.") var check = false

        func validate() throws {
            for (option, isThere) in [
                ("--code", trust.code != nil), ("--peer", trust.peer != nil), ("--remember", trust.remember != nil),
                ("--show-code", trust.showCode == true),
            ] where isThere {
                throw ValidationError(
                    "A gateway has no \(option): it lets in the keys of 'ferry trust', and whom 'ferry invite' has invited."
                )
            }
        }

        func run() async throws {
            do { try await serve() } catch let error as FerryError { throw CommandFailure(error.message) }
        }

        /// What the file says, and over it what the options say.
        func settings() throws -> GatewaySettings {
            var settings = try servers.settings()
            settings.transport = transport ?? settings.transport
            settings.store = store ?? settings.store
            if let mqtt { settings.outlet.orNew.mqtt = mqtt }
            if let http { settings.outlet.orNew.http = http }
            if let stream { settings.nats.orNew.stream = stream }
            if let prefix { settings.nats.orNew.prefix = prefix }
            settings.name = name ?? settings.name
            if let fleet { settings.fleet.orNew.bucket = fleet }
            if let downlink { settings.downlink.orNew.stream = downlink }
            if let allow { settings.trust.orNew.allow = allow }
            settings.metrics = metrics ?? settings.metrics
            if let logLevel { settings.log.orNew.level = logLevel }
            if let logFormat { settings.log.orNew.format = logFormat }
            if trust.sealed { settings.trust.orNew.seal = "always" }
            if trust.plain { settings.trust.orNew.seal = "never" }
            if let identity = trust.identity { settings.trust.orNew.identity = identity }
            if let trusted = trust.trusted { settings.trust.orNew.trusted = trusted }
            return settings
        }

        private func serve() async throws {
            let settings = try settings()
            let notifier = ServiceNotifier()
            let plan: GatewayRun
            do { plan = try GatewayRun(settings, notifier) } catch {
                // What stands in a file is no wrong usage.
                guard servers.config == nil else { throw error }
                throw ValidationError((error as? FerryError)?.message ?? "\(error)")
            }
            if check { return try await look(plan) }
            let reload = GatewayReload(plan, notifier) { [self] in try readAgain(notifier) }
            let (result, signal) = await Interruptible.run(grace: 10) { try await reload.run { say($0) } }
            guard signal == nil else { return say("ended; unpublished records stay in \(reload.plan.path)") }
            try result.get()
        }

        /// What the configuration says now.
        private func readAgain(_ notifier: ServiceNotifier) throws -> GatewayRun {
            guard servers.config != nil else {
                throw CommandFailure("There is no configuration to read again: start with --config.")
            }
            return try GatewayRun(try settings(), notifier)
        }

        private func look(_ plan: GatewayRun) async throws {
            try await plan.checkPlaces()
            let configuration: Gateway.Configuration
            switch plan.destination {
            case .nats(let nats): configuration = nats
            case .outlet(let outlet):
                await (try outlet.openForLook()).close()
                return say(outlet.welcome)
            }
            let stream = configuration.stream.name
            if let state = try await Gateway.check(configuration, largestRecord: plan.store.largestRecord) {
                say("stream \(stream) is as it must be, and has \(state.messages) messages")
            } else {
                say("no stream \(stream) yet; it is made when the gateway begins")
            }
            if let downlink = plan.downlink {
                if let state = try await Downlink.check(downlink) {
                    say("stream \(downlink.stream.name) is as it must be, and has \(state.messages) messages for peers")
                } else {
                    say("no stream \(downlink.stream.name) yet; it is made when the gateway begins")
                }
            }
            if let allowed = plan.allowed {
                let keys = try await NATSConnection.with(allowed.servers) { connection throws(FerryError) in
                    try await AllowedKeys(allowed).entries(on: connection)
                }
                say("the list of keys in bucket \(allowed.bucket) has \(keys.count)")
            }
            guard let leases = plan.leases else { return }
            if try await LeaseKeeper.check(leases) {
                say("bucket \(leases.bucket) is as it must be")
            } else {
                say("no bucket \(leases.bucket) yet; it is made when the gateway begins")
            }
        }
    }

    /// An object of the configuration, which an option makes where the file has none.
    private protocol SettingsObject { init() }

    extension NATSSettings: SettingsObject {}
    extension OutletSettings: SettingsObject {}
    extension DownlinkSettings: SettingsObject {}
    extension FleetSettings: SettingsObject {}
    extension TrustSettings: SettingsObject {}
    extension LogSettings: SettingsObject {}

    extension Optional where Wrapped: SettingsObject {
        fileprivate var orNew: Wrapped {
            get { self ?? Wrapped() }
            set { self = newValue }
        }
    }

    /// A line at once, also into a pipe.
    private func say(_ text: String) {
        let line = Array((text.harmless + "\n").utf8)
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
