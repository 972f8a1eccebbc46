#if Records
    public import Ferry

    extension RecordStore {
        /// What went through in an exchange.
        public struct Summary: Sendable, Hashable {
            /// The peer's name; nil when the exchange ended before the peer said who it is.
            public let peer: String?
            /// How many records the peer has committed.
            public let committed: Int
            /// How many records the peer has sent and this side has committed, with those that it had before.
            public let received: Int
            /// Why it ended.
            public var ending = Ending.complete
            /// Records that are larger than the peer takes. Each holds its stream up until it is cancelled.
            public var heldUp: [HeldUp] = []
            /// Whether it ended because a side had nothing more to do.
            public var isComplete: Bool { ending == .complete }

            /// A record that the peer never takes.
            public struct HeldUp: Sendable, Hashable {
                /// The stream that it holds up.
                public let stream: String
                /// Its place in the stream.
                public let sequence: UInt64
                /// Its size.
                public let bytes: Int
                /// The largest record that the peer takes, in bytes.
                public let largest: Int
            }

            /// Why an exchange ended.
            public enum Ending: Sendable, Hashable {
                /// A side had nothing more to do.
                case complete
                /// A side ended it before that, and said which side and why: its turn was over, or it had no slot.
                case calledOff(String)
                /// The link ended, in the words of the layer that noticed.
                case linkLost(String)

                /// The reason for people; `nil` when there was nothing more to do.
                public var reason: String? {
                    switch self {
                    case .complete: nil
                    case .calledOff(let reason), .linkLost(let reason): reason
                    }
                }
            }
        }

        /// Exchanges records with the peer at the other end of a channel, both ways, until the channel ends. Records
        /// that were not committed by then stay in the outbox, and the next exchange sends them.
        ///
        ///     let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: LengthPrefixFraming())
        ///     try await store.exchange(over: channel, with: "collector")
        ///
        /// A newer exchange with the same peer ends an older one, whose link is likely dead.
        ///
        /// - Parameters:
        ///   - channel: a channel that no other task reads or sends on, with the same framing on both sides; it is closed in the
        ///     end. Its messages must hold ``Configuration/largestRecord``, ``Configuration/batchBytes`` and 64 bytes.
        ///   - peer: the peer's name, for which this side vouches; nil for the link's identity, and where that is good
        ///     for one connection only, for the peer that had this store before.
        ///   - idle: ends the exchange after this long with nothing to send or to commit, and no message; nil for never.
        /// - Returns: what went through, when it was idle, or the peer was, or a side ended it and said why, or the peer left between
        ///   two messages: ``Summary/ending``.
        /// - Throws: `invalidConfiguration` for a name that no peer can have, `strangePeer`, `incompatiblePeer`, `misbehavingPeer`,
        ///   `peerCannotStore`, `timedOut`, `cancelled`, `closed` when the store was closed or a newer exchange began, the store's
        ///   errors, and the reasons why channels end.
        @discardableResult
        public func exchange(
            over channel: MessageChannel<[UInt8], [UInt8]>, with peer: String? = nil,
            endingWhenIdle idle: Duration? = nil
        ) async throws(FerryError) -> Summary {
            if let peer { try NameRule.checkPeer(peer) }
            return try await Exchange(self, channel, peer, idleTimeout: idle).run()
        }

        /// The same for programs.
        ///
        /// - Parameters:
        ///   - comer: a peer that has come to a listener. It takes its place when it has said HELLO, and keeps it once it is known
        ///     to the store or has brought a record.
        ///   - replaces: whether the peer may have another store than the last one under its name, as each gateway of a fleet has.
        ///   - onGreeting: called when the peer has said who it is, and was found to be that. It must not block.
        package func exchange(
            over channel: MessageChannel<[UInt8], [UInt8]>, with peer: String? = nil,
            endingWhenIdle idle: Duration? = nil, for comer: Acceptor.Comer?, replacing replaces: Bool = false,
            onGreeting: @escaping @Sendable () -> Void = {}
        ) async throws(FerryError) -> Summary {
            if let peer { try NameRule.checkPeer(peer) }
            var gate = ExchangeGate()
            if let comer {
                gate.greets = { identity throws(FerryError) in try comer.greeted(as: identity, isChecked: false) }
                gate.proves = { comer.proved() }
            }
            gate.met = {
                comer?.checked()
                onGreeting()
            }
            gate.replaces = replaces
            let exchange = Exchange(self, channel, peer, idleTimeout: idle, gate: gate)
            comer?.onReplaced { [weak exchange] in exchange?.fail($0) }
            return try await exchange.run()
        }

        /// Ends the exchange that runs with a peer, if one does. Records that the peer has not committed stay in the outbox.
        ///
        /// - Parameters:
        ///   - peer: its name.
        ///   - reason: what the peer is told where there may be more to do, such as that its turn is over. Unless given it is told
        ///     that there is nothing more to do, as being idle does.
        /// - Throws: `closed`, `storeFailed`.
        public func endExchange(with peer: String, because reason: String? = nil) async throws(FerryError) {
            guard let id = try await read({ _, book in book.peerNames[peer] }) else { return }
            let error = reason.map { FerryError(.exchangeEnded, $0) }
            watch.exchange(with: id)?.fail(error ?? FerryError(.exchangeIdle, "There is nothing more to exchange."))
        }

        /// Waits until nothing waits for a peer any more.
        ///
        /// - Parameters:
        ///   - peer: its name.
        ///   - timeout: how long.
        /// - Throws: `timedOut`, `cancelled`, `closed`, `storeFailed`.
        public func drained(_ peer: String, within timeout: Duration) async throws(FerryError) {
            let deadline = time.now + timeout
            var steps = watch.watch().makeAsyncIterator()
            let timer = time.schedule(at: deadline) { [watch] in watch.progress() }
            defer { timer.cancel() }
            while true {
                let count = try await read { _, book in
                    guard let id = book.peerNames[peer] else { return 0 }
                    return (book.outboundOfPeer[id] ?? []).reduce(0) { $0 + (book.outbound[$1]?.count ?? 0) }
                }
                guard count > 0 else { return }
                guard time.now < deadline else {
                    throw FerryError(.timedOut, "\(count) records still wait for peer \(peer) after \(timeout).")
                }
                _ = await steps.next(isolation: nil)
                guard !Task.isCancelled else {
                    throw FerryError(.cancelled, "The task was cancelled while records waited for peer \(peer).")
                }
            }
        }
    }
#endif
