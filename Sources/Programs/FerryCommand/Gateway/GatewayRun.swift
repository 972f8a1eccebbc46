#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryRecords
    import FerryTransports
    import Foundation
    import Synchronization

    /// What `ferry gateway` runs, by its settings.
    struct GatewayRun: Sendable {
        let destination: GatewayDestination
        let store: RecordStore.Configuration
        let path: String
        private let transport: NamedTransport?
        private let named: [String: NamedTransport]
        let leases: LeaseKeeper.Configuration?
        let downlink: Downlink.Configuration?
        let allowed: AllowedKeys.Configuration?
        private let slots: Int
        private let rounds: PeerRounds.Configuration
        private let interval: Duration
        private let metrics: String?
        private let trust: TrustRequest
        let log: GatewayLog
        /// What counts for the figures; nil without them.
        private let latencies: GatewayLatencies?
        private let notifier: ServiceNotifier

        /// - Parameter notifier: tells the service manager.
        init(_ settings: GatewaySettings, _ notifier: ServiceNotifier = ServiceNotifier()) throws {
            self.notifier = notifier
            func parse(_ text: String) throws -> NamedTransport {
                do { return try TransferOptions.parse(text) } catch { throw CommandFailure("\(error)") }
            }
            destination = try settings.destination()
            leases = try settings.leases()
            downlink = try settings.messages()
            allowed = try settings.allowed()
            interval = try settings.status()
            named = try (settings.fleet?.peers ?? [:]).mapValues(parse)
            guard settings.transport != nil || !named.isEmpty else {
                throw CommandFailure("No transport is named. Give --transport, or transport in the configuration.")
            }
            transport = try settings.transport.map(parse)
            guard let path = settings.store else {
                throw CommandFailure("No store is named. Give --store FILE, or store in the configuration.")
            }
            self.path = path
            var store = RecordStore.Configuration()
            store.largestRecord = settings.largestRecord ?? 1_000_000
            store.inboxCapacity = try settings.bytesOfAPeer() ?? 64 << 20
            store.acceptsStrangers = settings.takesStrangers(over: transport)
            self.store = store
            slots = try settings.peersAtOnce() ?? 32
            rounds = try settings.rounds()
            metrics = settings.metrics
            latencies = metrics.map { _ in GatewayLatencies() }
            trust = try settings.trustRequest()
            let log = try GatewayLog(settings.log?.level, settings.log?.format, gateway: destination.name)
            self.log = latencies.map { log.telling($0) } ?? log
        }

        /// Until the task is cancelled.
        func run(_ say: @escaping @Sendable (String) -> Void) async throws {
            let began = Date()
            let store = try await open(say)
            let notices = StoreNotices(store, since: began)
            try await store.closing { try await run($0, notices, say) }
        }

        /// Looks whether the store can be written and the place of the figures is free; makes nothing.
        func checkPlaces() async throws {
            let files = FileManager.default
            let folder = URL(filePath: path).deletingLastPathComponent().path()
            var isFolder: ObjCBool = false
            guard files.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw CommandFailure("The store \(path) has no folder \(folder). Make it, or name another store.")
            }
            guard !files.fileExists(atPath: path, isDirectory: &isFolder) || !isFolder.boolValue else {
                throw CommandFailure("\(path) is a folder, and a store is a file. Name a file in it.")
            }
            guard files.isWritableFile(atPath: files.fileExists(atPath: path) ? path : folder) else {
                throw CommandFailure(
                    "The store \(path) cannot be written. Let the gateway's user write to \(folder), or name another store."
                )
            }
            guard let metrics else { return }
            try await GatewayEndpoint(metrics) { _ in .init(text: "") }.end()
        }

        /// A disk that is full now is waited for, as one that is full later is.
        private func open(_ say: @Sendable (String) -> Void) async throws -> RecordStore {
            var isTold = false
            while true {
                do throws(FerryError) { return try RecordStore.open(path, configuration: store) } catch {
                    guard error.code == .diskFull else { throw error }
                    if !isTold { say(error.message) }
                    isTold = true
                    notifier.waits(error.message)
                }
                try await Task.sleep(for: .seconds(5))
            }
        }

        /// Publishes and collects, by the list of allowed keys where there is one.
        private func run(
            _ store: RecordStore, _ notices: StoreNotices, _ say: @escaping @Sendable (String) -> Void
        ) async throws {
            guard let allowed else {
                // A listener that proves keys has taken only those on its list.
                store.decideTrust { $0.certainty == .key ? .trusted : RecordStore.Trust($0) }
                return try await serve(store, notices, say)
            }
            let keys = AllowedKeys(allowed)
            store.decideTrust { keys.trust($0) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await keys.run { store.decideTrustAgain() } }
                group.addTask { try await serve(store, notices, say) }
                defer { group.cancelAll() }
                try await group.next()
            }
        }

        private func serve(
            _ store: RecordStore, _ notices: StoreNotices, _ say: @escaping @Sendable (String) -> Void
        ) async throws {
            let downlink = try downlink.map { configuration throws(FerryError) in
                try Downlink(store, configuration, servesAll: leases == nil, observer: log.observer)
            }
            if let leases, case .nats(let gateway) = destination {
                let fleet = try await GatewayFleet(store, leases, rounds, over: transport, named: named, trust, log)
                let publishing = try Gateway(store, gateway, observer: log.observer) { fleet.keeper.token(of: $0) }
                try await run(publishing, fleet, downlink, notices, say) { try await fleet.run(with: downlink) }
            } else if let transport {
                var bounds = RecordHub.Configuration()
                bounds.slots = slots
                let hub = try RecordHub(
                    store, over: try TransferOptions.open(transport, "gateway", trust), configuration: bounds,
                    channel: { [log] link throws(FerryError) in try RecordsChannel.open(over: link) { log.watch($0) } })
                if let observer = log.observer { hub.tellOfVisits(observer) }
                hub.onInterruption { say($0?.message ?? "Peers can come again.") }
                try await run(try publishing(store), nil, downlink, notices, say) {
                    try await hub.run()
                }
            }
        }

        private func publishing(_ store: RecordStore) throws(FerryError) -> any PublishingGateway {
            switch destination {
            case .nats(let configuration): try Gateway(store, configuration, observer: log.observer)
            case .outlet(let outlet): try OutletGateway(store, outlet.bounds, observer: log.observer, open: outlet.open)
            }
        }

        private func run(
            _ gateway: any PublishingGateway, _ fleet: GatewayFleet?, _ downlink: Downlink?,
            _ notices: StoreNotices, _ say: @escaping @Sendable (String) -> Void,
            _ collect: @escaping @Sendable () async throws -> Void
        ) async throws {
            let figures = GatewayFigures(gateway, fleet?.keeper, downlink, latencies, path: path)
            var endpoint: GatewayEndpoint?
            if let metrics { endpoint = try await GatewayEndpoint(metrics) { figures.answer($0) } }
            if let endpoint { say("metrics are at port \(endpoint.port)") }
            defer { endpoint?.end() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await gateway.run() }
                group.addTask { try await collect() }
                if let downlink { group.addTask { try await downlink.run() } }
                group.addTask { try await figures.keep(interval, notices, notifier, say, log) }
                if fleet != nil { group.addTask { try await figures.report() } }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    /// Channels of records, sealed where the link's transport says so.
    enum RecordsChannel {
        /// - Parameter watch: puts a tap around the link.
        static func open(
            over link: any Link, _ watch: (any Link) -> any Link
        ) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
            func channel(_ framing: some Framing) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
                try MessageChannel(over: watch(link), codec: BytesCodec(), framing: framing)
            }
            return try channel(ProtectedTransport.framing(LengthPrefixFraming(), over: link))
        }
    }

    /// What a gateway says of itself: on standard output, to Prometheus, and in the fleet's bucket.
    final class GatewayFigures: Sendable {
        private let gateway: any PublishingGateway
        private let keeper: LeaseKeeper?
        private let downlink: Downlink?
        private let latencies: GatewayLatencies?
        /// The store's.
        private let path: String

        private struct Look {
            var status = Gateway.Status()
            var space = StoreSpace()
            var notices: Int64 = 0
            var at: ContinuousClock.Instant
        }

        /// How it stood when it was looked at last.
        private let last: Mutex<Look>

        /// - Parameters:
        ///   - path: the store's file.
        ///   - now: counts as the first look.
        init(
            _ gateway: any PublishingGateway, _ keeper: LeaseKeeper?, _ downlink: Downlink?,
            _ latencies: GatewayLatencies? = nil, path: String,
            at now: ContinuousClock.Instant = .now
        ) {
            last = Mutex(Look(at: now))
            self.path = path
            self.gateway = gateway
            self.keeper = keeper
            self.downlink = downlink
            self.latencies = latencies
        }

        /// The figures of a second ago at most.
        var text: String {
            var text = MetricsText()
            let look = last.withLock { $0 }
            text.add(look.status)
            text.add(look.space)
            text.add(notices: look.notices)
            if let latencies { text.add(latencies) }
            if let keeper { text.add(keeper.status) }
            if let downlink { text.add(downlink.status) }
            return text.description
        }

        /// A gateway that has not looked at itself for this long hangs.
        static let longestSilence = Duration.seconds(30)

        /// The answers over HTTP at the time `now`.
        func answer(_ page: GatewayEndpoint.Page, at now: ContinuousClock.Instant = .now) -> GatewayEndpoint.Answer {
            switch page {
            case .metrics: return .init(text: text)
            case .health:
                let silence = now - last.withLock { $0.at }
                guard silence > Self.longestSilence else { return .init(text: "ok\n") }
                return .init(
                    isGood: false, text: "It has not looked at its store for \(silence.components.seconds) s.\n")
            case .readiness:
                let obstacles = obstacles
                guard !obstacles.isEmpty else { return .init(text: "ok\n") }
                return .init(isGood: false, text: obstacles.map { $0 + "\n" }.joined())
            }
        }

        /// Why records do not go on, or messages for peers do not come, as far as is known.
        private var obstacles: [String] {
            let status = last.withLock { $0.status }
            var obstacles: [String] = []
            if !status.isConnected { obstacles.append(status.trouble ?? "There is no connection to the stream yet.") }
            if let keeper, !keeper.status.isConnected {
                obstacles.append(keeper.status.trouble ?? "There is no connection to the fleet's bucket yet.")
            }
            if let downlink, !downlink.status.isConnected {
                obstacles.append(downlink.status.trouble ?? "There is no connection to the downlink's stream yet.")
            }
            return obstacles
        }

        /// Looks every second, says what the store notices and a line now and then, and tells the service manager each time.
        func keep(
            _ interval: Duration, _ notices: StoreNotices, _ notifier: ServiceNotifier,
            _ say: @Sendable (String) -> Void, _ log: GatewayLog
        ) async throws {
            var notices = notices
            var troubles: [String?] = [nil, nil, nil]
            var next = ContinuousClock.now
            while true {
                let status = try await gateway.status()
                for notice in try await notices.next() {
                    say(notice.text)
                    log.notice(notice)
                }
                let (space, count) = (StoreSpace(at: path), notices.count)
                last.withLock { $0 = Look(status: status, space: space, notices: count, at: .now) }
                let (leases, messages) = (keeper?.status, downlink?.status)
                for (index, trouble) in [status.trouble, leases?.trouble, messages?.trouble].enumerated() {
                    if let trouble, trouble != troubles[index] { say(trouble) }
                    troubles[index] = trouble
                }
                let line = Self.line(status, leases, messages)
                notifier.works(line)
                if ContinuousClock.now >= next {
                    next = .now + interval
                    say(line)
                }
                try await Task.sleep(for: min(interval, .seconds(1)))
            }
        }

        /// Tells the fleet's bucket, three times in the time of a lease.
        func report() async throws {
            guard let keeper else { return }
            while true {
                let (status, leases) = (last.withLock { $0.status }, keeper.status)
                let report = GatewayReport(
                    owned: leases.owned, begun: leases.begun, published: status.published,
                    duplicates: status.duplicates, kept: status.kept, waiting: status.waiting,
                    refused: leases.refused, unanswered: leases.unanswered, late: leases.late,
                    trouble: status.trouble ?? leases.trouble ?? downlink?.status.trouble)
                // One that does not get there is followed by the next.
                try? await keeper.report(Array(try JSONEncoder().encode(report)))
                try await Task.sleep(for: keeper.reportInterval)
            }
        }

        static func line(
            _ status: Gateway.Status, _ leases: LeaseKeeper.Status?, _ messages: Downlink.Status? = nil
        ) -> String {
            let owned = leases.map { ", \($0.owned) peers owned" + ($0.isConnected ? "" : " (no bucket)") } ?? ""
            let carried =
                messages.map { ", \($0.carried) messages carried" + ($0.isConnected ? "" : " (no downlink)") } ?? ""
            return "\(status.isConnected ? "connected" : "not connected"), \(status.published) published "
                + "(\(status.duplicates) were there), \(status.kept) kept, \(status.waiting) in the store\(owned)\(carried)"
        }
    }

    /// What a store's files take, and what their disk has left; 0 where the system does not tell.
    struct StoreSpace: Sendable {
        var bytes = 0
        var free = 0

        init() {}

        init(at path: String) {
            let files = FileManager.default
            for end in ["", "-wal", "-shm", "-reserve"] {
                bytes += (try? files.attributesOfItem(atPath: path + end)[.size] as? Int) ?? 0
            }
            free = ((try? files.attributesOfFileSystem(forPath: path))?[.systemFreeSize] as? NSNumber)?.intValue ?? 0
        }
    }

    extension MetricsText {
        /// What a store's space is called.
        mutating func add(_ space: StoreSpace) {
            add("ferry_gateway_store_bytes", .gauge, "What the store's files take.", space.bytes)
            add("ferry_gateway_disk_free_bytes", .gauge, "What the store's disk has left.", space.free)
        }

        /// What a store has noticed, over all that ran on it.
        mutating func add(notices count: Int64) {
            add(
                "ferry_gateway_notices_total", .counter, "Notices of the store, such as of records that are lost.",
                Int(count))
        }
    }

    /// What a gateway of a fleet says of itself in the bucket, for `ferry fleet status`.
    struct GatewayReport: Codable, Equatable, Sendable {
        var owned: Int
        var begun: Int
        var published: Int
        var duplicates: Int
        var kept: Int
        var waiting: Int
        var refused: Int
        var unanswered: Int
        var late: Int
        var trouble: String?
    }
#endif
