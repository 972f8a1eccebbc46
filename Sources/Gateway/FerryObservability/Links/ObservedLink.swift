#if Observability
    import CoreMetrics
    public import Ferry
    public import Logging

    /// A link that counts what passes through another link, and logs its life, and changes nothing. It goes with every transport.
    ///
    ///     let metrics = LinkMetrics(transport: "bluez")
    ///     let channel = try MessageChannel(over: ObservedLink(link, metrics, logger: logger), codec: codec)
    ///
    /// A link that opens and ends is logged at the level `debug`, one that loses its connection and gets another at `info`, with the
    /// peer as metadata. Chunks are counted, and not logged.
    public final class ObservedLink: Link {
        private let tap: TappedLink
        private let watch: LinkWatch

        /// Watches `link`, which must not be used directly from now on.
        ///
        /// - Parameters:
        ///   - link: the link.
        ///   - metrics: what counts; nil for nothing.
        ///   - logger: what logs; nil for nothing.
        public init(_ link: any Link, _ metrics: LinkMetrics? = nil, logger: Logger? = nil) {
            var logger = logger
            logger?[metadataKey: "peer"] = "\(link.peer)"
            watch = LinkWatch(metrics, logger)
            tap = TappedLink(link, observer: watch)
        }

        /// The link's own.
        public var peer: PeerIdentity { tap.peer }

        /// The link's own.
        public var role: LinkRole? { tap.role }

        /// The link's own.
        public var source: LinkSource { tap.source }

        /// The link's own.
        public var maximumChunkSize: Int { tap.maximumChunkSize }

        /// Activates the link; what happens is counted first.
        public func activate(_ receiver: any LinkReceiver) {
            watch.opened()
            tap.activate(Ears(receiver, watch))
        }

        /// Offers the chunk to the link.
        ///
        /// - Throws: what the link throws.
        public func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { try tap.trySend(chunk) }

        /// Asks the link to pause or go on.
        public func setReceiving(_ isReceiving: Bool) { tap.setReceiving(isReceiving) }

        /// Has the link replace its connection.
        public func replaceConnection() -> Bool { tap.replaceConnection() }

        /// Closes the link.
        public func close() { tap.close() }

        /// Hears what a tap does not tell.
        private final class Ears: LinkReceiver {
            private let receiver: any LinkReceiver
            private let watch: LinkWatch

            init(_ receiver: any LinkReceiver, _ watch: LinkWatch) {
                self.receiver = receiver
                self.watch = watch
            }

            func linkIsReady() { receiver.linkIsReady() }
            func linkDidReceive(_ chunk: RawSpan) { receiver.linkDidReceive(chunk) }
            func linkDidClose(_ reason: FerryError) { receiver.linkDidClose(reason) }

            func linkDidSuspend(_ reason: FerryError) {
                watch.suspended(reason)
                receiver.linkDidSuspend(reason)
            }

            func linkDidResume() {
                watch.resumed()
                receiver.linkDidResume()
            }
        }
    }

    /// What becomes of a link's events.
    final class LinkWatch: LinkObserver {
        private let metrics: LinkMetrics?
        private let logger: Logger?

        init(_ metrics: LinkMetrics?, _ logger: Logger?) {
            self.metrics = metrics
            self.logger = logger
        }

        func opened() {
            metrics?.opened()
            logger?.debug("The link is open.")
        }

        func linkDidSend(_ chunk: RawSpan) {
            metrics?.sentChunks.increment()
            metrics?.sentBytes.increment(by: chunk.byteCount)
        }

        func linkDidRefuse(_ chunk: RawSpan) { metrics?.refusedChunks.increment() }

        func linkIsReady() { metrics?.ready.increment() }

        func linkDidReceive(_ chunk: RawSpan) {
            metrics?.receivedChunks.increment()
            metrics?.receivedBytes.increment(by: chunk.byteCount)
        }

        func suspended(_ reason: FerryError) {
            metrics?.suspensions.increment()
            logger?.info("The link has lost its connection.", metadata: ["reason": "\(reason.code)"])
        }

        func resumed() {
            metrics?.resumptions.increment()
            logger?.info("The link has a connection again.")
        }

        func linkDidClose(_ reason: FerryError) {
            metrics?.closed(reason.code.description)
            logger?.debug("The link has ended: \(reason.message)", metadata: ["reason": "\(reason.code)"])
        }
    }
#endif
