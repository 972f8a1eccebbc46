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
