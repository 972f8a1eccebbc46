#if Observability && NATS && Records
    import Ferry
    import FerryFleet
    public import FerryGateway
    import FerryRecords
    public import Logging

    /// Logs what happens in a gateway with swift-log.
    ///
    /// | level | what |
    /// |---|---|
    /// | `error` | a peer that was let go later than its lease allowed |
    /// | `warning` | records that the stream does not take, by their reason, and each that it never takes; a server that is away, refuses or cannot be looked at; messages for a peer that do not go on |
    /// | `notice` | everything is published again |
    /// | `info` | connections, leases, visits in vain |
    /// | `debug` | each record that is put off, looks at the server, requests for leases, visits, messages that a peer has |
    /// | `trace` | each record that is read or published |
    ///
    /// Metadata are `gateway`, `peer`, `stream`, `sequence`, `record`, `place`, `token`, `reason` and `part`, as far as each has a meaning.
    public struct LoggingObserver: GatewayObserver {
        private let logger: Logger

        /// - Parameters:
        ///   - logger: what logs. A handler that blocks holds up the gateway.
        ///   - gateway: the gateway's name.
        public init(_ logger: Logger, gateway: String) {
            var logger = logger
            logger[metadataKey: "gateway"] = "\(gateway)"
            self.logger = logger
        }

        /// Logs.
        public func observe(_ event: GatewayEvent) {
            switch event {
            case .read(let records):
                guard logger.logLevel <= .trace else { return }
                for record in records { logger.trace("The record was read.", metadata: metadata(record)) }
            case .published(let publications):
                guard logger.logLevel <= .trace else { return }
                for one in publications {
                    var more: Logger.Metadata = ["took": "\(one.publishing)"]
                    if let place = one.sequence { more["place"] = "\(place)" }
                    logger.trace(
                        one.isDuplicate ? "The stream had the record already." : "The stream has the record.",
                        metadata: metadata(one.record, more))
                }
            case .putOff(let all): tell(all)
            case .readingBegins: logger.debug("Reading begins with the oldest record of the store.")
            case .repeats(let why): logger.notice("Everything that is kept is published again, for \(why).")
            case .connected(let part, let server):
                logger.info("Connected.", metadata: ["part": "\(part)", "server": "\(server)"])
            case .disconnected(let part, let isEnding):
                logger.log(
                    level: isEnding ? .info : .warning, isEnding ? "The gateway ends." : "The connection is lost.",
                    metadata: ["part": "\(part)"])
            case .failed(let part, let error):
                logger.warning("\(error.message)", metadata: ["part": "\(part)", "reason": "\(error.code)"])
            case .looked(let released):
                logger.debug("The server is as it was.", metadata: ["released": "\(released)"])
            case .lookFailed(let error): logger.warning("\(error.message)", metadata: ["reason": "\(error.code)"])
            case .carried(let peer, let count):
                logger.debug("The peer has messages.", metadata: ["peer": "\(peer)", "messages": "\(count)"])
            case .heldUp(let peer, let error):
                logger.warning(
                    "The peer's messages do not go on: \(error.message)",
                    metadata: ["peer": "\(peer)", "reason": "\(error.code)"])
            case .leaseAnswered(let peer, let answer): tell(answer, peer)
            case .leaseBegan(let peer, let token):
                logger.info("The peer is this gateway's.", metadata: ["peer": "\(peer)", "token": "\(token)"])
            case .leaseEnded(let peer, let token, let isLate):
                var metadata: Logger.Metadata = ["peer": "\(peer)"]
                if let token { metadata["token"] = "\(token)" }
                logger.log(
                    level: isLate ? .error : .info,
                    isLate ? "The peer was let go later than its lease allowed." : "The peer was let go.",
                    metadata: metadata)
            case .visitBegan(let peer): logger.debug("A visit begins.", metadata: ["peer": "\(peer)"])
            case .visitEnded(let peer, let visit): tell(visit, peer)
            }
        }

        /// A full stream refuses a thousand at once, and says it once here.
        private func tell(_ all: [GatewayEvent.PutOff]) {
            guard logger.logLevel <= .warning else { return }
            for one in all {
                let more: Logger.Metadata = ["reason": "\(one.error)"]
                guard one.isHeld else {
                    logger.debug("The record is put off: \(one.message)", metadata: metadata(one.record, more))
                    continue
                }
                logger.warning(
                    "The server can never take the record, and what follows in its stream waits: \(one.message)",
                    metadata: metadata(one.record, more))
            }
            for (error, some) in Dictionary(grouping: all.filter { !$0.isHeld }, by: \.error) {
                logger.warning(
                    "Records are put off: \(some[0].message)",
                    metadata: ["reason": "\(error)", "records": "\(some.count)"])
            }
        }

        private func tell(_ answer: LeaseAnswer, _ peer: String) {
            switch answer {
            case .unknown: logger.warning("A request for a lease had no answer.", metadata: ["peer": "\(peer)"])
            case .refused: logger.info("Another gateway was first.", metadata: ["peer": "\(peer)"])
            case .stored: logger.debug("The lease is stored.", metadata: ["peer": "\(peer)"])
            case .entry: logger.debug("The lease was read.", metadata: ["peer": "\(peer)"])
            }
        }

        private func tell(_ visit: GatewayEvent.Visit, _ peer: String) {
            guard let failure = visit.failure else {
                logger.debug(
                    "A visit is over.",
                    metadata: [
                        "peer": "\(peer)", "received": "\(visit.received ?? 0)", "sent": "\(visit.sent ?? 0)",
                        "took": "\(visit.duration)",
                    ])
                return
            }
            logger.info(
                "A visit was in vain: \(visit.message ?? "")",
                metadata: ["peer": "\(peer)", "reason": "\(failure)", "took": "\(visit.duration)"])
        }

        private func metadata(_ record: GatewayEvent.Record, _ more: Logger.Metadata = [:]) -> Logger.Metadata {
            var metadata = more
            metadata["peer"] = "\(record.peer)"
            metadata["stream"] = "\(record.id.stream)"
            metadata["sequence"] = "\(record.id.sequence)"
            metadata["record"] = "\(record.name)"
            if let token = record.token { metadata["token"] = "\(token)" }
            return metadata
        }
    }
#endif
