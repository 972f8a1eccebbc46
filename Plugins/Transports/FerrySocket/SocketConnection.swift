import Dispatch
import Ferry
import Synchronization

/// A connected socket on its way from its first chunk to its last.
///
/// Chunks are written by the sending task, and read on a queue of the connection's, which also brings every event. The
/// system's own buffer is the transmit queue: there is none here but for the rest of a chunk that the system took in part.
final class SocketConnection: Sendable {
    private enum Phase {
        /// Not activated.
        case idle
        case open
        /// This side has closed it and waits for the peer to take the sent chunks.
        case lingering
        case ended(FerryError)
    }

    private struct State {
        var phase = Phase.idle
        var receiver: (any LinkReceiver)?
        var isReceiving = true
        /// What the system has not taken yet of a chunk in a stream.
        var rest: ArraySlice<UInt8> = []
        /// Nothing more can be written, because of this; arrived bytes are still read.
        var failure: FerryError?
        var hasSent = false
        /// Nil before it is needed, and at the end.
        var watch: Watch?
        var linger: ScheduledTimer?
    }

    private let descriptor: Descriptor
    let maximumChunkSize: Int
    private let linger: Duration
    private let time: any TimeSource
    private let queue = DispatchQueue(label: "ferry.socket")
    private let state = Mutex(State())
    private let inbound: Inbound
    private let lingering: LingeringConnections?

    /// - Parameter lingering: bounds how many connections linger at once; nil for one that this side has made.
    init(
        owning descriptor: Descriptor, _ configuration: SocketConfiguration, _ time: any TimeSource,
        _ lingering: LingeringConnections? = nil
    ) {
        self.lingering = lingering
        self.descriptor = descriptor
        maximumChunkSize = configuration.maximumChunkSize
        linger = configuration.linger
        self.time = time
        inbound = Inbound(descriptor.kind)
    }

    // MARK: Life

    func activate(_ receiver: any LinkReceiver) {
        let ended = state.withLock { state -> FerryError? in
            switch state.phase {
            case .idle:
                state.phase = .open
                state.receiver = receiver
                if state.isReceiving { watch(&state).want(.readable) }
                return nil
            case .open: return nil
            case .lingering:
                state.receiver = receiver
                return nil
            case .ended(let reason): return reason
            }
        }
        if let ended { queue.async { receiver.linkDidClose(ended) } }
    }

    private func watch(_ state: inout State) -> Watch {
        if let watch = state.watch { return watch }
        let watch = Watch(descriptor, on: queue) { [self] events in
            if events.contains(.readable) { read() }
            if events.contains(.writable) { hasRoom() }
        }
        state.watch = watch
        return watch
    }

    func close() {
        let closed = FerryError(.closed, "This side closed the link.")
        let (lingers, _) = state.withLock { state -> (Bool, (any LinkReceiver)?) in
            switch state.phase {
            case .idle where state.watch == nil && !state.hasSent:
                // It has no receiver, and nothing is in flight.
                state.phase = .ended(closed)
                descriptor.close()
                return (false, nil)
            case .idle, .open:
                let watch = watch(&state)
                state.phase = .lingering
                if state.failure != nil { return (false, end(&state, closed)) }
                if state.rest.isEmpty { descriptor.finishWriting() }
                // What the peer sends now is read and thrown away, until it ends the connection in its turn.
                watch.want(.readable)
                queue.async { [self] in read() }
                state.linger = time.schedule(at: time.now + linger) { [weak self] in
                    self?.endLingering()
                }
                return (true, nil)
            case .lingering, .ended: return (false, nil)
            }
        }
        if lingers { lingering?.add(self) }
    }

    /// Whether this side has closed it, and the peer may still take the sent chunks.
    var isLingering: Bool { state.withLock { if case .lingering = $0.phase { true } else { false } } }

    /// The peer has had its time.
    func endLingering() {
        _ = state.withLock { end(&$0, FerryError(.closed, "This side closed the link.")) }
    }

    /// Ends it, once, and tells the receiver.
    ///
    /// - Returns: the receiver, to be let go of without the lock: it may own the link, whose end closes this connection.
    private func end(_ state: inout State, _ reason: FerryError) -> (any LinkReceiver)? {
        if case .ended = state.phase { return nil }
        let isLingering = if case .lingering = state.phase { true } else { false }
        let reason = isLingering ? FerryError(.closed, "This side closed the link.") : reason
        state.phase = .ended(reason)
        state.linger?.cancel()
        state.linger = nil
        state.rest = []
        state.watch.take()?.cancel { [descriptor] in descriptor.close() }
        guard let receiver = state.receiver.take() else { return nil }
        queue.async { receiver.linkDidClose(reason) }
        return receiver
    }

    // MARK: Writing

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard chunk.byteCount > 0 else { throw FerryError(.emptyChunk, "The chunk is empty.") }
        guard chunk.byteCount <= maximumChunkSize else {
            throw FerryError(
                .chunkTooLarge, "The chunk has \(chunk.byteCount) bytes; the link takes \(maximumChunkSize).")
        }
        let result = state.withLock { state -> Result<Bool, FerryError> in
            switch state.phase {
            case .ended(let reason): return .failure(reason)
            case .lingering: return .failure(FerryError(.closed, "This side closed the link."))
            case .idle, .open: break
            }
            if let failure = state.failure { return .failure(failure) }
            guard state.rest.isEmpty else { return .success(false) }
            let outcome = chunk.withUnsafeBytes { bytes in
                descriptor.kind == .packets
                    ? descriptor.write(bytes) : descriptor.write(length: ChunkStream.length(bytes.count), bytes)
            }
            switch outcome {
            case .count(let count):
                state.hasSent = true
                keepRest(of: chunk, after: count, &state)
                return .success(true)
            case .blocked:
                watch(&state).want(.writable)
                return .success(false)
            case .failed(let problem):
                state.failure = problem.ended
                // The reader meets the end, after the arrived bytes.
                return .failure(problem.ended)
            }
        }
        return try result.get()
    }

    /// A stream may take a chunk in part: the rest goes first when there is room.
    private func keepRest(of chunk: RawSpan, after count: Int, _ state: inout State) {
        guard descriptor.kind == .stream, count < ChunkStream.lengthBytes + chunk.byteCount else { return }
        let (first, second) = ChunkStream.length(chunk.byteCount)
        let whole = [first, second] + chunk.withUnsafeBytes { Array($0) }
        state.rest = whole[count...]
        watch(&state).want(.writable)
    }

    /// The socket takes bytes again.
    private func hasRoom() {
        let receiver = state.withLock { state -> (any LinkReceiver)? in
            guard let watch = state.watch else { return nil }
            while !state.rest.isEmpty {
                switch state.rest.withUnsafeBytes({ descriptor.write($0) }) {
                case .count(let count): state.rest = state.rest.dropFirst(count)
                case .blocked: return nil
                case .failed(let problem):
                    state.failure = problem.ended
                    state.rest = []
                }
            }
            state.rest = []
            if case .lingering = state.phase { descriptor.finishWriting() }
            watch.ignore(.writable)
            return state.receiver
        }
        receiver?.linkIsReady()
    }

    // MARK: Reading

    func setReceiving(_ isReceiving: Bool) {
        state.withLock { state in
            state.isReceiving = isReceiving
            guard isReceiving, case .open = state.phase else { return }
            watch(&state).want(.readable)
            // No event comes for chunks that were read already.
            queue.async { [self] in read() }
        }
    }

    private enum Wish { case deliver(any LinkReceiver), discard, sleep, none }

    /// How to go on with the next item.
    private func wish() -> Wish {
        state.withLock { state in
            switch state.phase {
            case .idle, .ended: return .none
            case .lingering: return .discard
            case .open:
                if state.isReceiving, let receiver = state.receiver { return .deliver(receiver) }
                state.watch?.ignore(.readable)
                return .sleep
            }
        }
    }

    /// Delivers arrived chunks. Runs on the queue, for a bounded number of reads, so that the writer has its turn.
    private func read() {
        var reads = 0
        while true {
            switch wish() {
            case .none, .sleep: return
            case .discard: inbound.discard()
            case .deliver(let receiver):
                switch inbound.next() {
                case .chunk(let bytes):
                    receiver.linkDidReceive(RawSpan(_unsafeBytes: bytes))
                    continue
                case .malformed(let reason):
                    _ = state.withLock { end(&$0, reason) }
                    return
                case .nothing: break
                }
            }
            guard reads < 64 else { return }
            guard readOnce() else { return }
            reads += 1
        }
    }

    /// Reads the available bytes. Returns false when there are none, at present or for good.
    private func readOnce() -> Bool {
        let reason: FerryError
        switch descriptor.read(inbound.room) {
        case .count(0): reason = FerryError(.disconnected, "The peer closed the connection.")
        case .count(let count):
            guard let malformed = inbound.didRead(count) else { return true }
            reason = malformed
        case .blocked: return false
        case .failed(let problem):
            // A socket tells of an abrupt end once, and then what had arrived.
            if problem == .reset, inbound.notesReset() { return true }
            reason = problem.ended
        }
        _ = state.withLock { end(&$0, reason) }
        return false
    }
}
