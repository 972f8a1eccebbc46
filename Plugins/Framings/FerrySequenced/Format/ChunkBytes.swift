import Ferry

/// Reads a chunk from its beginning, answering nil where it ends too soon.
struct ChunkReader {
    let bytes: UnsafeRawBufferPointer
    private(set) var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var remaining: Int { bytes.count - offset }

    mutating func byte() -> UInt8? {
        guard offset < bytes.count else { return nil }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// A little-endian number of four bytes.
    mutating func word() -> UInt32? {
        guard remaining >= 4 else { return nil }
        defer { offset += 4 }
        return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// A varint, in its shortest form.
    mutating func varint(_ what: StaticString) throws(FerryError) -> UInt64? {
        if offset < bytes.count, bytes[offset] < 0x80 { return byte().map(UInt64.init) }
        var decoder = Varint.Decoder()
        while let next = byte() {
            do {
                if let value = try decoder.push(next) { return value }
            } catch {
                throw FerryError(
                    .malformedStream,
                    "A sequenced chunk states its \(what) as a varint that is \(error). The peer is not a sequenced "
                        + "session of this version.")
            }
        }
        return nil
    }

    /// The next `count` bytes.
    mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= remaining else { return nil }
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }
}

/// Writes a chunk from its beginning into memory that is large enough by construction; what does not fit is dropped.
struct ChunkWriter {
    private let bytes: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

    @inline(__always)
    mutating func byte(_ value: UInt8) {
        guard count < bytes.count else { return }
        bytes[count] = value
        count += 1
    }

    mutating func word(_ value: UInt32) {
        for shift: UInt32 in [0, 8, 16, 24] { byte(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            byte(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        byte(UInt8(truncatingIfNeeded: rest))
    }

    @inline(__always)
    mutating func append(_ source: UnsafeRawBufferPointer) {
        let fitting = min(source.count, bytes.count - count)
        guard fitting > 0, let base = source.baseAddress, let target = bytes.baseAddress else { return }
        (target + count).copyMemory(from: base, byteCount: fitting)
        count += fitting
    }
}
