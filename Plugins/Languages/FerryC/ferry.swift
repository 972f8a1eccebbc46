public import CFerry
import Ferry
import FerrySequenced

// ferry.h, function by function: null and numbers out of range are turned away here. What holds for each is said there.

/// The largest `message_bytes`.
private let largestMessage: UInt32 = 16 << 20

private func limits(_ given: UnsafePointer<ferry_limits>?) -> Limits? {
    guard let given = given?.pointee, given.message_bytes <= largestMessage, given.outbound_messages > 0,
        given.outbound_bytes <= Int32.max, given.inbound_bytes <= Int32.max, given.stall_nanoseconds > 0
    else { return nil }
    var limits = Limits()
    limits.maximumMessageSize = Int(given.message_bytes)
    limits.maximumInboundBytes = Int(given.inbound_bytes)
    limits.inboundStallTimeout = .nanoseconds(given.stall_nanoseconds)
    return limits
}

private func hand(
    _ session: AnySession, _ limits: ferry_limits, to place: UnsafeMutablePointer<OpaquePointer?>
) -> Int32 {
    let bounded = BoundedSession(session, limits: limits)
    place.pointee = OpaquePointer(Unmanaged.passRetained(bounded).toOpaque())
    return Status.ok
}

private func bounded(_ session: OpaquePointer?) -> BoundedSession? {
    guard let session else { return nil }
    return Unmanaged<BoundedSession>.fromOpaque(UnsafeRawPointer(session)).takeUnretainedValue()
}

/// The caller's bytes; nil when the pointer is null though there should be some, or the size is no size.
private func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, start != nil || count == 0 else { return nil }
    return UnsafeRawBufferPointer(start: start, count: count)
}

private func buffer(_ start: UnsafeMutableRawPointer?, _ count: Int) -> UnsafeMutableRawBufferPointer? {
    guard count >= 0, start != nil || count == 0 else { return nil }
    return UnsafeMutableRawBufferPointer(start: start, count: count)
}

/// `ferry_limits_default` of ferry.h.
@_cdecl("ferry_limits_default")
public func ferryLimitsDefault(_ limits: UnsafeMutablePointer<ferry_limits>?) -> Int32 {
    guard let limits else { return Status.argument }
    limits.pointee = ferry_limits(
        message_bytes: 4096, outbound_bytes: 8192, outbound_messages: 16, inbound_bytes: 8192,
        stall_nanoseconds: 60_000_000_000)
    return Status.ok
}

/// `ferry_create_end_of_message` of ferry.h.
@_cdecl("ferry_create_end_of_message")
public func ferryCreateEndOfMessage(
    _ given: UnsafePointer<ferry_limits>?, _ marker: UnsafeRawPointer?, _ markerCount: Int, _ chunkBytes: UInt32,
    _ session: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    guard let session else { return Status.argument }
    session.pointee = nil
    guard let limits = limits(given), let given, let chosen = bytes(marker, markerCount), chunkBytes <= Int32.max else {
        return Status.argument
    }
    guard marker == nil || (2...20).contains(markerCount) else { return Status.argument }
    do throws(FerryError) {
        let framing = try EndOfMessageFraming(
            marker: marker == nil ? EndOfMessageFraming.defaultMarker : [UInt8](chosen),
            chunkSize: chunkBytes == 0 ? nil : Int(chunkBytes))
        return hand(
            HeldSession(framing.makeSession(limits: limits), minimumChunkSize: framing.minimumChunkSize),
            given.pointee, to: session)
    } catch {
        return Status.argument
    }
}

/// `ferry_create_length_prefix` of ferry.h.
@_cdecl("ferry_create_length_prefix")
public func ferryCreateLengthPrefix(
    _ given: UnsafePointer<ferry_limits>?, _ prefix: Int32, _ session: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    guard let session else { return Status.argument }
    session.pointee = nil
    guard let limits = limits(given), let given else { return Status.argument }
    let chosen: LengthPrefixFraming.Prefix
    switch Int(prefix) {
    case Int(FERRY_PREFIX_VARINT): chosen = .varint
    case Int(FERRY_PREFIX_16_BIG): chosen = .uint16(.big)
    case Int(FERRY_PREFIX_16_LITTLE): chosen = .uint16(.little)
    case Int(FERRY_PREFIX_32_BIG): chosen = .uint32(.big)
    case Int(FERRY_PREFIX_32_LITTLE): chosen = .uint32(.little)
    default: return Status.argument
    }
    let framing = LengthPrefixFraming(prefix: chosen)
    return hand(HeldSession(framing.makeSession(limits: limits), minimumChunkSize: 1), given.pointee, to: session)
}

/// `ferry_create_sequenced` of ferry.h.
@_cdecl("ferry_create_sequenced")
public func ferryCreateSequenced(
    _ given: UnsafePointer<ferry_limits>?, _ identifier: UInt32, _ window: UInt32,
    _ session: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    ferryCreateSequencedFor(given, identifier, window, UInt32(FERRY_CODEC_UNTOLD), session)
}

/// `ferry_create_sequenced_for` of ferry.h.
@_cdecl("ferry_create_sequenced_for")
public func ferryCreateSequencedFor(
    _ given: UnsafePointer<ferry_limits>?, _ identifier: UInt32, _ window: UInt32, _ codec: UInt32,
    _ session: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    guard let session else { return Status.argument }
    session.pointee = nil
    guard let limits = limits(given), let given, (1...64).contains(window), let codec = UInt8(exactly: codec),
        codec <= UInt8(FERRY_CODEC_CBOR) || codec >= 64
    else { return Status.argument }
    var configuration = SequencedFraming.Configuration()
    configuration.window = Int(window)
    let framing = SequencedFraming(configuration, sessionID: { identifier })
    return hand(
        HeldSession(
            framing.makeSession(limits: limits, payloads: PayloadFormat(codec: codec)), minimumChunkSize: 20),
        given.pointee, to: session)
}

/// `ferry_destroy` of ferry.h.
@_cdecl("ferry_destroy")
public func ferryDestroy(_ session: OpaquePointer?) {
    guard let session else { return }
    Unmanaged<BoundedSession>.fromOpaque(UnsafeRawPointer(session)).release()
}

/// `ferry_link_opened` of ferry.h.
@_cdecl("ferry_link_opened")
public func ferryLinkOpened(_ session: OpaquePointer?, _ now: Int64) -> Int32 {
    bounded(session)?.linkOpened(now) ?? Status.argument
}

/// `ferry_link_closed` of ferry.h.
@_cdecl("ferry_link_closed")
public func ferryLinkClosed(_ session: OpaquePointer?, _ now: Int64) -> Int32 {
    bounded(session)?.linkClosed(now) ?? Status.argument
}

/// `ferry_enqueue` of ferry.h.
@_cdecl("ferry_enqueue")
public func ferryEnqueue(
    _ session: OpaquePointer?, _ start: UnsafeRawPointer?, _ count: Int, _ number: UnsafeMutablePointer<UInt64>?,
    _ now: Int64
) -> Int32 {
    guard let session = bounded(session), let payload = bytes(start, count) else { return Status.argument }
    return session.enqueue(payload, number, now)
}

/// `ferry_cancel` of ferry.h.
@_cdecl("ferry_cancel")
public func ferryCancel(_ session: OpaquePointer?, _ number: UInt64, _ now: Int64) -> Int32 {
    bounded(session)?.cancel(number, now) ?? Status.argument
}

/// `ferry_next_chunk` of ferry.h.
@_cdecl("ferry_next_chunk")
public func ferryNextChunk(
    _ session: OpaquePointer?, _ start: UnsafeMutableRawPointer?, _ capacity: Int, _ count: UnsafeMutablePointer<Int>?,
    _ now: Int64
) -> Int32 {
    guard let session = bounded(session), let buffer = buffer(start, capacity), let count else {
        return Status.argument
    }
    return session.nextChunk(buffer, count, now)
}

/// `ferry_receive` of ferry.h.
@_cdecl("ferry_receive")
public func ferryReceive(_ session: OpaquePointer?, _ start: UnsafeRawPointer?, _ count: Int, _ now: Int64) -> Int32 {
    guard let session = bounded(session), let chunk = bytes(start, count) else { return Status.argument }
    return session.receive(chunk, now)
}

/// `ferry_next_event` of ferry.h.
@_cdecl("ferry_next_event")
public func ferryNextEvent(
    _ session: OpaquePointer?, _ event: UnsafeMutablePointer<ferry_event>?, _ start: UnsafeMutableRawPointer?,
    _ capacity: Int, _ now: Int64
) -> Int32 {
    guard let session = bounded(session), let event, let buffer = buffer(start, capacity) else {
        return Status.argument
    }
    return session.nextEvent(event, buffer, now)
}

/// `ferry_deadline` of ferry.h.
@_cdecl("ferry_deadline")
public func ferryDeadline(_ session: OpaquePointer?, _ at: UnsafeMutablePointer<Int64>?) -> Int32 {
    guard let session = bounded(session), let at else { return Status.argument }
    return session.deadline(at)
}

/// `ferry_wake` of ferry.h.
@_cdecl("ferry_wake")
public func ferryWake(_ session: OpaquePointer?, _ now: Int64) -> Int32 {
    bounded(session)?.wake(now) ?? Status.argument
}

/// `ferry_error_text` of ferry.h.
@_cdecl("ferry_error_text")
public func ferryErrorText(_ session: OpaquePointer?, _ start: UnsafeMutablePointer<CChar>?, _ capacity: Int) -> Int32 {
    guard let session = bounded(session), let start, capacity > 0 else { return Status.argument }
    var place = 0
    for byte in session.text where place < capacity - 1 {
        start[place] = CChar(bitPattern: byte)
        place += 1
    }
    start[place] = 0
    return Status.ok
}
