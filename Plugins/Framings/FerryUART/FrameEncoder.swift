import Ferry

/// Bytes with a meaning in SLIP (RFC 1055).
enum SLIP {
    static let end: UInt8 = 0xC0
    static let escape: UInt8 = 0xDB
    static let escapedEnd: UInt8 = 0xDC
    static let escapedEscape: UInt8 = 0xDD
}

/// Bytes with a meaning in lines.
enum Line {
    static let feed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
}

/// Messages as they go over the line.
struct FrameEncoder: Sendable {
    let format: UARTFraming.Format
    let opensFrames: Bool

    /// Refuses what the format cannot say.
    func check(_ payload: [UInt8]) throws(FerryError) {
        switch format {
        case .cobs: break
        case .slip:
            guard !payload.isEmpty else {
                throw FerryError(
                    .unsendable,
                    "SLIP has no empty message: receivers pass over it. Send at least one byte, or use COBS.")
            }
        case .lines:
            let bytes = payload.span.bytes
            let feed = bytes.first(Line.feed, from: 0)
            guard feed == bytes.byteCount else {
                throw FerryError(
                    .unsendable,
                    "The line has a line feed at byte \(feed) of \(payload.count). Send each line by itself.")
            }
            guard payload.last != Line.carriageReturn else {
                throw FerryError(
                    .unsendable,
                    "The line ends with a carriage return, which receivers take for a part of its end. Leave it out, or use COBS."
                )
            }
        }
    }

    /// Puts the frame of a message in place of what `frame` holds.
    func encode(_ payload: [UInt8], into frame: inout [UInt8]) {
        frame.removeAll(keepingCapacity: true)
        switch format {
        case .lines(let end):
            frame.reserveCapacity(payload.count + 2)
            frame.append(contentsOf: payload)
            if end == .carriageReturnLineFeed { frame.append(Line.carriageReturn) }
            frame.append(Line.feed)
        case .slip:
            frame.reserveCapacity(payload.count + payload.count / 16 + 2)
            if opensFrames { frame.append(SLIP.end) }
            for byte in payload {
                switch byte {
                case SLIP.end:
                    frame.append(SLIP.escape)
                    frame.append(SLIP.escapedEnd)
                case SLIP.escape:
                    frame.append(SLIP.escape)
                    frame.append(SLIP.escapedEscape)
                default: frame.append(byte)
                }
            }
            frame.append(SLIP.end)
        case .cobs:
            frame.reserveCapacity(payload.count + payload.count / 254 + 3)
            if opensFrames { frame.append(0) }
            appendBlocks(of: payload, to: &frame)
            frame.append(0)
        }
    }

    private func appendBlocks(of payload: [UInt8], to frame: inout [UInt8]) {
        let bytes = payload.span.bytes
        var start = 0
        while true {
            let zero = bytes.first(0, from: start, upTo: min(bytes.byteCount, start + 254))
            frame.append(UInt8(zero - start + 1))
            frame.append(contentsOf: payload[start..<zero])
            let isFull = zero - start == 254
            // A full block stands for no zero, so after one the message may be at its end.
            if zero == bytes.byteCount { return }
            start = isFull ? zero : zero + 1
        }
    }
}

/// One of two bytes, looked for among 16 at once.
private struct EitherByte {
    private let a: SIMD16<UInt8>
    private let b: SIMD16<UInt8>

    @inline(__always)
    init(_ a: UInt8, _ b: UInt8) { (self.a, self.b) = (SIMD16(repeating: a), SIMD16(repeating: b)) }

    /// Which of the bytes it is. As two words, since `any` takes longer.
    @inline(__always)
    func matches(_ bytes: SIMD16<UInt8>) -> SIMD2<UInt64> {
        unsafeBitCast((bytes .== a) .| (bytes .== b), to: SIMD2<UInt64>.self)
    }

    /// The place of the first that matches; nil where none does.
    @inline(__always)
    static func first(in matches: SIMD2<UInt64>) -> Int? {
        if matches[0] != 0 { return UInt64(littleEndian: matches[0]).trailingZeroBitCount / 8 }
        if matches[1] != 0 { return 8 &+ UInt64(littleEndian: matches[1]).trailingZeroBitCount / 8 }
        return nil
    }
}

extension RawSpan {
    /// The place of the first `byte`, or the end of the buffer.
    @inline(__always)
    func first(_ byte: UInt8, from start: Int, upTo end: Int? = nil) -> Int {
        first(byte, byte, from: start, upTo: end)
    }

    /// The place of the first `a` or `b` from `start` on, or the end of the buffer. 16 bytes at a time.
    @inline(__always)
    func first(_ a: UInt8, _ b: UInt8, from start: Int, upTo limit: Int? = nil) -> Int {
        let end = limit ?? byteCount
        let either = EitherByte(a, b)
        var place = start
        while place &+ 16 <= end {
            let bytes = unsafeLoadUnaligned(fromByteOffset: place, as: SIMD16<UInt8>.self)
            if let found = EitherByte.first(in: either.matches(bytes)) { return place &+ found }
            place &+= 16
        }
        while place < end {
            let byte = unsafeLoad(fromByteOffset: place, as: UInt8.self)
            if byte == a || byte == b { return place }
            place &+= 1
        }
        return end
    }

    /// Copies the bytes from `start` to the first `a` or `b`, or to the limit or the end of the buffer, and returns the place of that. 64 and 16
    /// bytes at a time: the target must have room for all to the limit.
    ///
    /// - Parameter count: how many bytes the target has already.
    @inline(__always)
    func copy(
        upTo a: UInt8, _ b: UInt8, from start: Int, limit: Int? = nil, to target: UnsafeMutableRawBufferPointer,
        at count: Int
    ) -> Int {
        let end = limit ?? byteCount
        let either = EitherByte(a, b)
        /// Copies 16 bytes; which of them are `a` or `b`.
        func copy16(_ place: Int) -> SIMD2<UInt64> {
            let bytes = unsafeLoadUnaligned(fromByteOffset: place, as: SIMD16<UInt8>.self)
            target.storeBytes(of: bytes, toByteOffset: count &+ (place &- start), as: SIMD16<UInt8>.self)
            return either.matches(bytes)
        }
        var place = start
        while place &+ 64 <= end {
            let found = (copy16(place) | copy16(place &+ 16)) | (copy16(place &+ 32) | copy16(place &+ 48))
            if found[0] | found[1] != 0 { break }
            place &+= 64
        }
        while place < end {
            if place &+ 16 > end {
                guard end &- start >= 16 else { break }
                // The last 16 once more: those before `place` are neither.
                place = end &- 16
            }
            if let found = EitherByte.first(in: copy16(place)) { return place &+ found }
            place &+= 16
        }
        while place < end {
            let byte = unsafeLoad(fromByteOffset: place, as: UInt8.self)
            if byte == a || byte == b { return place }
            target[count &+ (place &- start)] = byte
            place &+= 1
        }
        return end
    }
}
