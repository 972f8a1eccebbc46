import Ferry

@testable import FerrySequenced

// A sequenced session whose peer is the test itself: what the peer says is written out byte by byte, and so is the time.
extension SequencedFraming.Session {
    /// A session with the identifier 7.
    static func alone(
        limits: Limits = Limits(), _ change: (inout SequencedFraming.Configuration) -> Void = { _ in }
    ) -> Self {
        var configuration = SequencedFraming.Configuration()
        change(&configuration)
        return SequencedFraming(configuration) { 7 }.makeSession(limits: limits)
    }

    /// One that has met a peer which says `hello`, and has nothing to say.
    static func met(
        _ hello: [UInt8] = SequencedHello.fromPeer(), limits: Limits = Limits(),
        _ change: (inout SequencedFraming.Configuration) -> Void = { _ in }
    ) throws -> Self {
        var session = alone(limits: limits, change)
        session.linkDidOpen(at: .zero)
        try session.take(hello)
        try session.drain()
        return session
    }

    /// Takes one chunk of the peer's.
    mutating func take(_ chunk: [UInt8], at now: Timestamp = .zero) throws(FerryError) {
        try receive(chunk.span.bytes, at: now)
    }

    /// All chunks that can go now.
    @discardableResult
    mutating func drain(atMost size: Int = 20, at now: Timestamp = .zero) throws -> [[UInt8]] {
        var chunks: [[UInt8]] = []
        while try transmit(
            atMost: size, at: now,
            { chunk in
                chunks.append(chunk.withUnsafeBytes { Array($0) })
                return true
            }) == .accepted
        {}
        return chunks
    }

    /// What the session says against a chunk.
    mutating func refusal(of chunk: [UInt8]) -> FerryError.Code? {
        do {
            try take(chunk)
            return nil
        } catch {
            return error.code
        }
    }

    /// Waits for the next timer, and answers when it came.
    @discardableResult
    mutating func wakeNext() throws -> Timestamp? {
        guard let deadline else { return nil }
        try wake(at: deadline)
        return deadline
    }
}

extension SequencedHello {
    /// The hello of session 99, with credit for 4096 bytes.
    static func fromPeer(_ change: (inout SequencedHello) -> Void = { _ in }) -> [UInt8] {
        var hello = SequencedHello(
            session: 99, window: 48, maximumMessageSize: RoundedSize(roundingDown: 1 << 20),
            credit: RoundedSize(roundingDown: 4096), codec: 0, compression: 0)
        change(&hello)
        return written(20) { hello.write(to: &$0) }
    }
}

extension Acknowledgement {
    /// The chunk that says that everything before `next` is there, and what else, with credit for `units` x 64 bytes.
    static func chunk(_ next: UInt8, credit units: UInt64 = 64, bitmap: UInt64 = 0) -> [UInt8] {
        written(20) { writer in
            writer.byte(SequencedChunk.Control.acknowledgement)
            Acknowledgement(next: next, credit: units, bitmap: bitmap).write(to: &writer)
        }
    }
}

/// A data chunk that holds one whole message in slot 0, and may ask for an acknowledgement.
func wholeMessage(_ sequence: UInt8, _ payload: [UInt8], asks: Bool = false) -> [UInt8] {
    written(payload.count + 16) { writer in
        writer.byte(asks ? 0xA6 : 0xA4)
        writer.byte(sequence)
        writer.byte(Record.begin.byte(slot: 0))
        writer.varint(UInt64(payload.count))
        for byte in payload { writer.byte(byte) }
        writer.word(crc32c(payload))
    }
}

/// A data chunk that begins a message in a slot, and states its own length.
func messageBegins(_ sequence: UInt8, slot: UInt8 = 0, count: Int, _ part: [UInt8]) -> [UInt8] {
    written(part.count + 16) { writer in
        writer.byte(0xA8)
        writer.byte(sequence)
        writer.varint(UInt64(1 + Varint.encodedCount(UInt64(count)) + part.count) << 1)
        writer.byte(Record.begin.byte(slot: slot))
        writer.varint(UInt64(count))
        for byte in part { writer.byte(byte) }
    }
}

/// A data chunk that goes on with the current message, and states its own length.
func messageGoesOn(_ sequence: UInt8, _ part: [UInt8]) -> [UInt8] {
    written(part.count + 16) { writer in
        writer.byte(0x88)
        writer.byte(sequence)
        writer.varint(UInt64(part.count) << 1)
        for byte in part { writer.byte(byte) }
    }
}

func crc32c(_ bytes: [UInt8]) -> UInt32 {
    var checksum = CRC32C()
    checksum.add(bytes.span.bytes)
    return checksum.value
}

private func written(_ capacity: Int, _ write: (inout ChunkWriter) -> Void) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: capacity)
    let count = bytes.withUnsafeMutableBytes { buffer in
        var writer = ChunkWriter(buffer)
        write(&writer)
        return writer.count
    }
    return Array(bytes[..<count])
}

/// The hello of a peer that has so many chunks of session `id`.
func resuming(_ count: UInt32, hasMet: Bool = false, of id: UInt32 = 7) -> [UInt8] {
    SequencedHello.fromPeer {
        $0.known = .init(session: id, receivedCount: count)
        $0.hasMet = hasMet
    }
}
