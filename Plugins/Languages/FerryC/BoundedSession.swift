import CFerry
import Ferry

/// A session with what ferry.h promises beyond a framing's: bounds, the order of calls, an error that stays.
final class BoundedSession {
    /// Where the session stands.
    private enum State {
        /// There was no link yet.
        case new
        case open
        /// The link has ended. Another one may follow only where the framing survives that.
        case closed
        /// Every call returns this number.
        case failed(Int32)
    }

    /// What a chunk that waits for its events to be fetched counts besides its bytes.
    private static let chunkCost = 16
    /// What an event that waits counts: with the least message it takes as much memory. A chunk may hold as many messages as bytes.
    private static let eventCost = 64

    private let session: AnySession
    private let limits: ferry_limits
    private var state = State.new
    /// The time of the latest call.
    private var latest = Timestamp(nanoseconds: .min)
    private var nextNumber: UInt64 = 0
    /// The messages whose end has not been fetched.
    private var unfinished: [(id: MessageID, count: Int)] = []
    private var unfinishedBytes = 0
    /// The bytes received since the last time that no event was left.
    private var unfetchedBytes = 0
    /// An event whose message did not fit the caller's buffer.
    private var held: FramingEvent?
    #if FERRY_WITHOUT_TEXTS
        /// Nothing: this build is without texts.
        var text: EmptyCollection<UInt8> { EmptyCollection() }
    #else
        /// The text of the latest error, or of the one that ended the session.
        private(set) var text = "".utf8
    #endif

    init(_ session: AnySession, limits: ferry_limits) {
        self.session = session
        self.limits = limits
    }

    /// The caller's time, which never goes back.
    private func time(_ now: Int64) -> Timestamp {
        latest = max(latest, Timestamp(nanoseconds: now))
        return latest
    }

    /// An error's number, for an event or a refusal after which the session goes on.
    private func note(_ error: FerryError) -> Int32 {
        #if !FERRY_WITHOUT_TEXTS
            if case .failed = state {} else { text = error.message.utf8 }
        #endif
        return Status.number(of: error.code)
    }

    /// The number of an error that ends the session, or its link where the framing can go on over another.
    private func fail(_ error: FerryError, at now: Timestamp) -> Int32 {
        let number = note(error)
        if session.needsNewLink {
            do throws(FerryError) {
                try session.linkDidClose(at: now)
                state = .closed
                return number
            } catch {}
        }
        state = .failed(number)
        return number
    }

    /// The error that a call returns for which a link must be open; nil when it is.
    private var refusalWithoutLink: Int32? {
        switch state {
        case .open: nil
        case .new, .closed: Status.order
        case .failed(let number): number
        }
    }

    func linkOpened(_ now: Int64) -> Int32 {
        let now = time(now)
        switch state {
        case .failed(let number): return number
        case .open: return Status.order
        case .closed where !session.survivesLinkLoss: return Status.order
        case .new, .closed:
            session.linkDidOpen(at: now)
            state = .open
            return Status.ok
        }
    }

    func linkClosed(_ now: Int64) -> Int32 {
        if let refusal = refusalWithoutLink { return refusal }
        let now = time(now)
        do throws(FerryError) {
            try session.linkDidClose(at: now)
            state = .closed
            return Status.ok
        } catch {
            return fail(error, at: now)
        }
    }

    func enqueue(_ payload: UnsafeRawBufferPointer, _ number: UnsafeMutablePointer<UInt64>?, _ now: Int64) -> Int32 {
        switch state {
        case .failed(let number): return number
        case .closed where !session.survivesLinkLoss: return Status.order
        default: break
        }
        guard payload.count <= Int(limits.message_bytes) else { return Int32(FERRY_ERROR_MESSAGE_TOO_LARGE) }
        guard unfinished.count < Int(limits.outbound_messages),
            payload.count <= Int(limits.outbound_bytes) - unfinishedBytes
        else { return Status.full }
        let id = MessageID(rawValue: nextNumber)
        do throws(FerryError) {
            try session.enqueue([UInt8](payload), as: id, at: time(now))
        } catch {
            return note(error)
        }
        number?.pointee = nextNumber
        nextNumber += 1
        unfinished.append((id, payload.count))
        unfinishedBytes += payload.count
        return Status.ok
    }

    func cancel(_ number: UInt64, _ now: Int64) -> Int32 {
        if case .failed(let number) = state { return number }
        let id = MessageID(rawValue: number)
        guard session.cancel(id, at: time(now)) else { return Status.nothing }
        finish(id)
        return Status.ok
    }

    private func finish(_ id: MessageID) {
        guard let place = unfinished.firstIndex(where: { $0.id == id }) else { return }
        unfinishedBytes -= unfinished.remove(at: place).count
    }

    func nextChunk(_ buffer: UnsafeMutableRawBufferPointer, _ count: UnsafeMutablePointer<Int>, _ now: Int64) -> Int32 {
        count.pointee = 0
        if let refusal = refusalWithoutLink { return refusal }
        guard buffer.count >= session.minimumChunkSize else {
            count.pointee = session.minimumChunkSize
            return Status.buffer
        }
        let now = time(now)
        do throws(FerryError) {
            let outcome = try session.transmit(atMost: buffer.count, at: now) { (chunk) throws(FerryError) -> Bool in
                chunk.withUnsafeBytes { buffer.copyMemory(from: $0) }
                count.pointee = chunk.byteCount
                return true
            }
            return outcome == .accepted ? Status.ok : Status.nothing
        } catch {
            return fail(error, at: now)
        }
    }

    /// How many bytes may be received before events are fetched.
    private var room: Int {
        let bytes = Int(limits.inbound_bytes) - unfetchedBytes
        let events = session.waitingEvents
        return events > bytes / Self.eventCost ? 0 : bytes - events * Self.eventCost
    }

    func receive(_ chunk: UnsafeRawBufferPointer, _ now: Int64) -> Int32 {
        if let refusal = refusalWithoutLink { return refusal }
        let cost = min(chunk.count, Int.max - Self.chunkCost) + Self.chunkCost
        guard unfetchedBytes == 0 || cost <= room else { return Status.full }
        unfetchedBytes = cost > Int.max - unfetchedBytes ? .max : unfetchedBytes + cost
        let now = time(now)
        do throws(FerryError) {
            try session.receive(chunk.bytes, at: now)
            return Status.ok
        } catch {
            return fail(error, at: now)
        }
    }

    func nextEvent(
        _ event: UnsafeMutablePointer<ferry_event>, _ buffer: UnsafeMutableRawBufferPointer, _ now: Int64
    ) -> Int32 {
        event.pointee = ferry_event()
        guard let next = held ?? session.nextEvent() else {
            unfetchedBytes = 0
            return Status.nothing
        }
        held = nil
        switch next {
        case .received(let message):
            event.pointee.kind = Int32(FERRY_EVENT_RECEIVED)
            event.pointee.count = message.count
            guard message.count <= buffer.count else {
                held = next
                return Status.buffer
            }
            message.withUnsafeBytes { buffer.copyMemory(from: $0) }
            session.consume(message.count, at: time(now))
        case .progress(let id, let count):
            event.pointee.kind = Int32(FERRY_EVENT_PROGRESS)
            event.pointee.number = id.rawValue
            event.pointee.count = count
        case .sent(let id):
            event.pointee.kind = Int32(FERRY_EVENT_SENT)
            event.pointee.number = id.rawValue
            finish(id)
        case .failed(let id, let error):
            event.pointee.kind = Int32(FERRY_EVENT_FAILED)
            event.pointee.number = id.rawValue
            event.pointee.error = note(error)
            finish(id)
        case .receiveFailed(let error):
            event.pointee.kind = Int32(FERRY_EVENT_RECEIVE_FAILED)
            event.pointee.error = note(error)
        }
        return Status.ok
    }

    func deadline(_ at: UnsafeMutablePointer<Int64>) -> Int32 {
        if let refusal = refusalWithoutLink { return refusal }
        guard let deadline = session.deadline else { return Status.nothing }
        at.pointee = deadline.nanoseconds
        return Status.ok
    }

    func wake(_ now: Int64) -> Int32 {
        if let refusal = refusalWithoutLink { return refusal }
        let now = time(now)
        do throws(FerryError) {
            try session.wake(at: now)
            return Status.ok
        } catch {
            return fail(error, at: now)
        }
    }
}
