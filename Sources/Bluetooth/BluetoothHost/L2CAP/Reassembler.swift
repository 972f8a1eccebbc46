/// Puts the controller's ACL packets of one connection back together into L2CAP frames
/// (Core Specification 5.4, Vol 3, Part A, 7.2).
///
/// Frames in one packet never come here: the host reads them in place.
struct Reassembler: Sendable {
    /// Longest payload taken. Nothing that this host agrees to is longer, so that more is a peer's fault.
    static let maximumPayload = 4096

    private var held: [UInt8] = []
    private var expected = 0

    /// Whether no frame has been begun.
    var isEmpty: Bool { held.isEmpty }

    enum Outcome: Equatable {
        /// More is to come.
        case partial
        /// ``take()`` has the frame.
        case complete
        /// The fragments do not make a frame; the connection cannot be trusted any more.
        case malformed(String)
    }

    /// Takes a fragment; `isStart` when the packet says that it begins a frame.
    mutating func append(_ fragment: RawSpan, isStart: Bool) -> Outcome {
        if isStart {
            guard held.isEmpty else { return .malformed("a frame begins before the one before it is whole") }
        } else {
            guard !held.isEmpty else { return .malformed("a continuation without a beginning") }
        }
        guard fragment.byteCount > 0 else { return .partial }
        held.append(copying: fragment)
        // The header itself may be cut.
        guard held.count >= 4 else { return .partial }
        expected = 4 + Int(held[0]) + Int(held[1]) << 8
        guard expected <= 4 + Self.maximumPayload else {
            return .malformed("a frame of \(expected - 4) bytes, above \(Self.maximumPayload)")
        }
        guard held.count <= expected else { return .malformed("more bytes than the frame's length") }
        return held.count == expected ? .complete : .partial
    }

    /// Hands over the frame, header included; give the buffer back with ``recycle(_:)``.
    mutating func take() -> [UInt8] {
        var frame: [UInt8] = []
        swap(&frame, &held)
        return frame
    }

    /// Keeps a frame's buffer for the next one.
    mutating func recycle(_ buffer: consuming [UInt8]) {
        guard held.isEmpty else { return }
        buffer.removeAll(keepingCapacity: true)
        held = buffer
    }
}
