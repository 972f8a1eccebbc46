public import Ferry

extension BitchatFraming {
    /// The state on one link.
    public struct Session: FramingSession {
        private let configuration: Configuration
        private let maximumMessageSize: Int

        private var outbound = OutboundQueue()
        /// How the first message is cut, once a fragment of it was offered.
        private var cut: FragmentCut?
        /// The value that is offered.
        private var scratch: [UInt8] = []

        private var assemblies: FragmentAssemblies
        private var deliveredMessages = 0
        @usableFromInline var events = FramingEventQueue()

        init(_ configuration: Configuration, _ limits: Limits) {
            self.configuration = configuration
            maximumMessageSize = max(0, limits.maximumMessageSize)
            assemblies = FragmentAssemblies(configuration, limit: max(0, limits.maximumMessageSize))
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

// MARK: - Sending

extension BitchatFraming.Session {
    /// Takes a packet to be sent.
    ///
    /// - Throws: `messageTooLarge` above ``/Ferry/Limits/maximumMessageSize``; `bitchat.notAPacket` for a message that is no packet,
    ///   or has bytes behind it.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        guard let head = try? BitchatHead(payload.span.bytes), head.end == payload.count else {
            throw FerryError(
                .notABitchatPacket,
                "The message of \(payload.count) bytes is no packet of bitchat's. Send what BitchatPacket.bytes() returns."
            )
        }
        outbound.append(payload, as: id)
    }

    /// Takes a packet back if nothing of it has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
        guard outbound.cancel(id) else { return false }
        if !outbound.hasBegun { cut = nil }
        return true
    }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers the first packet, or its next fragment. A packet that would need too many fragments has failed, and the next one is looked at.
    /// One whose fragments do not fit any more begins anew.
    ///
    /// - Throws: what `offer` throws, and `chunkSizeTooSmall` below ``BitchatFraming/smallestValue``.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        while !outbound.isEmpty {
            let size = maximumChunkSize()
            guard size >= BitchatFraming.smallestValue else {
                throw FerryError(
                    .chunkSizeTooSmall,
                    "The link takes chunks of \(size) bytes; bitchat needs \(BitchatFraming.smallestValue), an ATT_MTU of "
                        + "\(BitchatFraming.smallestValue + 3).")
            }
            let packet = outbound.first.payload
            if !outbound.hasBegun, packet.count <= size {
                scratch.removeAll(keepingCapacity: true)
                scratch += packet
                if configuration.pads { Self.pad(&scratch, atMost: size) }
                guard try offer(scratch.span.bytes) else { return .refused }
                sent(packet.count)
                return .accepted
            }
            guard var fragments = plan(packet, size) else { continue }
            fragments.write(packet, to: &scratch)
            guard try offer(scratch.span.bytes) else { return .refused }
            if fragments.isAtEnd {
                sent(packet.count)
                return .accepted
            }
            fragments.nextHasLeft()
            cut = fragments
            // Where the packet has begun anew, the progress that was told stays true.
            outbound.accept(upTo: max(outbound.acceptedBytes, fragments.leftBytes), telling: &events)
            return .accepted
        }
        return .idle
    }

    /// How the first packet goes on, or begins; nil where it cannot be sent, which is told.
    private mutating func plan(_ packet: [UInt8], _ size: Int) -> FragmentCut? {
        // One of which nothing has left is cut as large as fits; once is enough for a link that refuses it again and again.
        if let cut, outbound.hasBegun ? cut.overhead + cut.size <= size : cut.overhead + cut.size == size { return cut }
        guard let cut = FragmentCut(packet, room: size, seed: configuration.seed) else {
            let peers = (try? BitchatHead(packet.span.bytes))?.hops.count ?? 0
            refuse("with \(peers) peers on its way leaves no place for data in values of \(size) bytes")
            return nil
        }
        guard cut.total <= configuration.maximumFragments else {
            refuse(
                "of \(packet.count) bytes needs \(cut.total) fragments, and \(configuration.maximumFragments) are the most"
            )
            return nil
        }
        if !outbound.hasBegun { self.cut = cut }
        return cut
    }

    private mutating func refuse(_ what: String) {
        events.failed(
            outbound.first.id, FerryError(.messageTooLarge, "The packet \(what) (BitchatFraming.Configuration)."))
        outbound.removeFirst()
        cut = nil
    }

    private mutating func sent(_ count: Int) {
        outbound.accept(upTo: count, telling: &events)
        cut = nil
    }

    /// Each byte of the padding is its length.
    private static func pad(_ bytes: inout [UInt8], atMost size: Int) {
        guard let length = [256, 512, 1024, 2048].first(where: { $0 > bytes.count }), length <= size,
            let missing = UInt8(exactly: length - bytes.count)
        else { return }
        bytes += [UInt8](repeating: missing, count: Int(missing))
    }
}

// MARK: - Receiving

extension BitchatFraming.Session {
    /// Takes a value that arrived: a packet, or a fragment of one. What cannot be one is told, and changes nothing.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        do throws(FerryError) {
            let head = try BitchatHead(chunk)
            guard head.type == BitchatPacket.fragment else {
                guard head.end <= maximumMessageSize else {
                    throw .messageTooLarge(
                        receiving: "has \(head.end) bytes", afterMessages: deliveredMessages, limit: maximumMessageSize)
                }
                return deliver(chunk.extracting(first: head.end).withUnsafeBytes { [UInt8]($0) })
            }
            let (packet, givenUp) = try assemblies.add(chunk, head, at: now)
            for error in givenUp { events.receiveFailed(error) }
            guard let packet else { return }
            let whole = try BitchatHead(packet.span.bytes)
            deliver(Array(packet[..<whole.end]))
        } catch {
            events.receiveFailed(error)
        }
    }

    private mutating func deliver(_ packet: [UInt8]) {
        events.received(packet)
        deliveredMessages += 1
    }

    /// How much of the packet has come whose fragments began first.
    public var arriving: ReceiveProgress? { assemblies.oldestProgress }

    /// When fragments have taken too long.
    public var deadline: Timestamp? { assemblies.deadline }

    /// Gives up packets whose fragments have taken too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        for error in assemblies.giveUp(at: now) { events.receiveFailed(error) }
    }

    /// - Throws: `truncatedMessage` when a packet had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        if let error = assemblies.unfinished { throw error }
    }
}
