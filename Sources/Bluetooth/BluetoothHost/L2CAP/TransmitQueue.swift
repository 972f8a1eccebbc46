/// L2CAP channels that are always there on an LE link (Core Specification 5.4, Vol 3, Part A, 2.1).
enum ChannelID {
    static let att: UInt16 = 0x0004
    static let signalling: UInt16 = 0x0005
    static let securityManager: UInt16 = 0x0006
    /// Channels made by signalling.
    static let dynamic: ClosedRange<UInt16> = 0x0040...0x007F
}

/// Frames of one connection that wait for room in the controller, back to back in one buffer.
///
/// Frames leave in order and are cut into ACL packets only when one can be sent. Once the buffer has grown to the
/// queue's usual length nothing is allocated.
struct TransmitQueue: Sendable {
    private var bytes: [UInt8] = []
    private var head = 0
    private var frameRemaining = 0
    /// Where the last frame begins, if it is a notification that another may join.
    private var joinable: Int?

    /// Bytes that wait, headers included.
    var count: Int { bytes.count - head }
    var isEmpty: Bool { head == bytes.count }

    /// Appends a frame's header; exactly `count` bytes follow.
    private mutating func begin(_ channel: UInt16, count: Int) {
        if isEmpty {
            bytes.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 16384 {
            bytes.removeSubrange(0..<head)
            head = 0
        }
        joinable = nil
        bytes.append(u16: UInt16(truncatingIfNeeded: count))
        bytes.append(u16: channel)
    }

    /// Queues a frame. Payloads are below 65 536 bytes by construction of all callers.
    mutating func append(_ payload: [UInt8], on channel: UInt16) {
        begin(channel, count: payload.count)
        bytes += payload
    }

    /// Queues an ATT PDU of an opcode, a handle and a value, copying the value once.
    mutating func appendValue(_ opcode: UInt8, handle: UInt16, _ value: RawSpan) {
        begin(ChannelID.att, count: 3 + value.byteCount)
        bytes.append(opcode)
        bytes.append(u16: handle)
        bytes.append(copying: value)
    }

    /// Queues a notification, or joins it to the one that waits last if both fit a PDU of `mtu` bytes
    /// (Vol 3, Part F, 3.4.7.4): order is kept, for nothing lies between the two.
    mutating func appendNotification(handle: UInt16, _ value: RawSpan, atMost mtu: Int) {
        // None of a frame at or behind the head has left.
        guard let start = joinable, start >= head else {
            appendValue(ATTOpcode.notification, handle: handle, value)
            joinable = bytes.count - value.byteCount - 7
            return
        }
        let isSingle = bytes[start + 4] == ATTOpcode.notification
        let count = bytes.count - start - 4 + (isSingle ? 2 : 0) + 4 + value.byteCount
        guard count <= mtu else {
            joinable = nil
            return appendNotification(handle: handle, value, atMost: mtu)
        }
        if isSingle {
            let first = bytes.count - start - 7
            bytes[start + 4] = ATTOpcode.multipleNotification
            let length = [UInt8(truncatingIfNeeded: first), UInt8(truncatingIfNeeded: first >> 8)]
            bytes.insert(contentsOf: length, at: start + 7)
        }
        bytes.append(u16: handle)
        bytes.append(u16: UInt16(truncatingIfNeeded: value.byteCount))
        bytes.append(copying: value)
        bytes[start] = UInt8(truncatingIfNeeded: count)
        bytes[start + 1] = UInt8(truncatingIfNeeded: count >> 8)
    }

    /// Queues a credit-based channel's K-frame; the SDU's first one states the SDU's length
    /// (Core Specification 5.4, Vol 3, Part A, 3.4.3).
    mutating func appendSegment(_ segment: ArraySlice<UInt8>, sduCount: Int?, on channel: UInt16) {
        begin(channel, count: segment.count + (sduCount == nil ? 0 : 2))
        if let sduCount { bytes.append(u16: UInt16(truncatingIfNeeded: sduCount)) }
        bytes += segment
    }

    /// Appends the next ACL packet in H4 form to `output`, with at most `limit` bytes of payload
    /// (Core Specification 5.4, Vol 4, Part E, 5.4.2). The queue must not be empty.
    mutating func cut(into output: inout [UInt8], connection handle: UInt16, atMost limit: Int) {
        let isFirst = frameRemaining == 0
        if isFirst { frameRemaining = 4 + Int(bytes[head]) + Int(bytes[head + 1]) << 8 }
        let count = min(frameRemaining, limit)
        output.append(H4PacketType.acl.rawValue)
        // Packet boundary flag: 0 begins a PDU that is not flushed automatically, 1 continues it.
        output.append(u16: handle | (isFirst ? 0x0000 : 0x1000))
        output.append(u16: UInt16(truncatingIfNeeded: count))
        output += bytes[head..<head + count]
        head += count
        frameRemaining -= count
    }
}
