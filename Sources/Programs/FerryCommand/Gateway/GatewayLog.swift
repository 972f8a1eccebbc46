#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryRecords

    #if Observability
        import FerryObservability
        import Logging
    #endif

    /// What a gateway logs on standard error; nothing without `--log-level`.
    struct GatewayLog: Sendable {
        /// Who is told what happens.
        private(set) var observer: (any GatewayObserver)?
        /// What every link to a peer is wrapped in.
        let watch: @Sendable (any Link) -> any Link
        /// Logs what the store has noticed.
        let notice: @Sendable (RecordStore.Notice) -> Void
        /// Waits until all of it is written, a second at most.
        let flush: @Sendable () -> Void

        #if Observability
            /// - Parameters:
            ///   - level: `trace`, `debug`, `info`, `notice`, `warning`, `error` or `critical`; nil for nothing.
            ///   - format: `text` or `json`; nil for text.
            ///   - gateway: the gateway's name.
            init(_ level: String?, _ format: String? = nil, gateway: String) throws {
                let formats = LogFormat.allCases.map(\.rawValue).joined(separator: " and ")
                guard let format = format.map(LogFormat.init(rawValue:)) ?? .text else {
                    throw CommandFailure("There is no format '\(format ?? "")' of logs. There are \(formats).")
                }
                let writer = LineWriter(format: format)
                guard let level else {
                    (observer, watch, notice, flush) = (nil, { $0 }, { _ in }, {})
                    return
                }
                guard let level = Logger.Level(rawValue: level) else {
                    let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
                    throw CommandFailure("There is no level '\(level)' of logs. There are: \(levels).")
                }
                var lines = Logger(label: "ferry.gateway") { _ in LogLines(writer) }
                lines.logLevel = level
                let logger = lines
                observer = LoggingObserver(logger, gateway: gateway)
                watch = { ObservedLink($0, logger: logger) }
                notice = { notice in
                    logger.error("\(notice.text)", metadata: notice.peer.map { ["peer": "\($0)"] } ?? [:])
                }
                flush = { writer.flush() }
            }
        #else
            init(_ level: String?, _ format: String? = nil, gateway: String) throws {
                guard level == nil else {
                    throw CommandFailure(
                        "Logs are not part of this build. Build with the trait Observability: swift run --traits "
                            + "Records,NATS,Observability ferry gateway ...")
                }
                (observer, watch, notice, flush) = (nil, { $0 }, { _ in }, {})
            }
        #endif

        /// The same, and another observer is told too.
        func telling(_ other: some GatewayObserver) -> GatewayLog {
            var all = self
            all.observer = observer.map { GatewayObservers([$0, other]) } ?? other
            return all
        }
    }
#endif
