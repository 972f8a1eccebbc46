import CFerry
import Ferry
import FerrySequenced

/// A session of any framing, behind one pointer.
class AnySession {
    /// The fewest bytes that a chunk needs.
    let minimumChunkSize: Int

    init(minimumChunkSize: Int) { self.minimumChunkSize = minimumChunkSize }

    var survivesLinkLoss: Bool { false }
    var needsNewLink: Bool { false }
    var deadline: Timestamp? { nil }
    var waitingEvents: Int { 0 }
    func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {}
    func cancel(_ id: MessageID, at now: Timestamp) -> Bool { false }
    func transmit(
        atMost size: Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission { .idle }
    func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {}
    func nextEvent() -> FramingEvent? { nil }
    func wake(at now: Timestamp) throws(FerryError) {}
    func linkDidOpen(at now: Timestamp) {}
    func linkDidClose(at now: Timestamp) throws(FerryError) {}
    func consume(_ count: Int, at now: Timestamp) {}
}

/// A session that says how many events there are.
protocol CountedSession: FramingSession {
    var waitingEvents: Int { get }
}

extension EndOfMessageFraming.Session: CountedSession {}
extension LengthPrefixFraming.Session: CountedSession {}
extension SequencedFraming.Session: CountedSession {}

/// A session of one framing.
final class HeldSession<Session: CountedSession>: AnySession {
    private var session: Session

    init(_ session: Session, minimumChunkSize: Int) {
        self.session = session
        super.init(minimumChunkSize: minimumChunkSize)
    }

    /// Borrows the session: the compiler copies it for a getter, with all its arrays.
    private func read<Result>(_ body: (inout Session) -> Result) -> Result { body(&session) }

    override var survivesLinkLoss: Bool { session.survivesLinkLoss }
    override var needsNewLink: Bool { session.needsNewLink }
    override var deadline: Timestamp? { read { $0.deadline } }
    override var waitingEvents: Int { read { $0.waitingEvents } }
    override func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        try session.enqueue(payload, as: id, at: now)
    }
    override func cancel(_ id: MessageID, at now: Timestamp) -> Bool { session.cancel(id, at: now) }
    override func transmit(
        atMost size: Int, at now: Timestamp, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission { try session.transmit(atMost: size, at: now, offer) }
    override func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        try session.receive(chunk, at: now)
    }
    override func nextEvent() -> FramingEvent? { session.nextEvent() }
    override func wake(at now: Timestamp) throws(FerryError) { try session.wake(at: now) }
    override func linkDidOpen(at now: Timestamp) { session.linkDidOpen(at: now) }
    override func linkDidClose(at now: Timestamp) throws(FerryError) { try session.linkDidClose(at: now) }
    override func consume(_ count: Int, at now: Timestamp) { session.consume(count, at: now) }
}

/// An error's number in ferry.h.
struct Status {
    static var ok: Int32 { Int32(FERRY_OK) }
    static var nothing: Int32 { Int32(FERRY_NOTHING) }
    static var argument: Int32 { Int32(FERRY_ERROR_ARGUMENT) }
    static var buffer: Int32 { Int32(FERRY_ERROR_BUFFER) }
    static var order: Int32 { Int32(FERRY_ERROR_ORDER) }
    static var full: Int32 { Int32(FERRY_ERROR_FULL) }

    /// The number of a code. Names are compared byte by byte: the comparison of strings would bring Unicode's tables into
    /// firmware.
    static func number(of code: FerryError.Code) -> Int32 {
        func isCode(_ other: FerryError.Code) -> Bool {
            #if FERRY_WITHOUT_TEXTS
                code == other
            #else
                code.description.utf8.elementsEqual(other.description.utf8)
            #endif
        }
        if isCode(.messageTooLarge) { return Int32(FERRY_ERROR_MESSAGE_TOO_LARGE) }
        if isCode(.notText) { return Int32(FERRY_ERROR_NOT_TEXT) }
        if isCode(.chunkSizeTooSmall) { return Int32(FERRY_ERROR_CHUNK_SIZE_TOO_SMALL) }
        if isCode(.malformedStream) { return Int32(FERRY_ERROR_MALFORMED_STREAM) }
        if isCode(.incompatiblePeer) { return Int32(FERRY_ERROR_INCOMPATIBLE_PEER) }
        if isCode(.peerLostState) { return Int32(FERRY_ERROR_PEER_LOST_STATE) }
        if isCode(.truncatedMessage) { return Int32(FERRY_ERROR_TRUNCATED) }
        if isCode(.timedOut) { return Int32(FERRY_ERROR_TIMED_OUT) }
        if isCode(.cancelledByPeer) { return Int32(FERRY_ERROR_CANCELLED_BY_PEER) }
        if isCode(.invalidConfiguration) { return Int32(FERRY_ERROR_CONFIGURATION) }
        return Int32(FERRY_ERROR_OTHER)
    }
}
