import CZlib
import Ferry

/// The most that is handed to libz at once: its counters have 32 bits.
let largestSlice = 1 << 30

/// Raw deflate without any header, with the largest window (zlib.h, deflateInit2).
let rawDeflateWindowBits: Int32 = -15

/// One deflate stream. libz's state lives on the heap and points back at its `z_stream`, which must therefore not move.
struct Deflater: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>

    init(level: Int, dictionary: [UInt8]) throws(FerryError) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let status = deflateInit2_(
            stream, Int32(level), Z_DEFLATED, rawDeflateWindowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else {
            stream.deallocate()
            throw cannotStart("compressing", status)
        }
        self.stream = stream
        // Before the first byte, and on a raw stream, this cannot fail (zlib.h).
        if !dictionary.isEmpty { _ = deflateSetDictionary(stream, dictionary, UInt32(dictionary.count)) }
    }

    deinit {
        _ = deflateEnd(stream)
        stream.deallocate()
    }

    /// Appends all of `plain` to `output` as one stream of at most `budget` bytes, or leaves `output` as it was and
    /// returns false.
    ///
    /// libz writes into pieces of one size for every budget: how it cuts its blocks can depend on the space it is
    /// given, and the same input shall become the same bytes.
    mutating func deflate(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws(FerryError) -> Bool {
        let start = output.count
        let status = plain.withUnsafeBytes { plain in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16 << 10) { piece in
                var rest = plain[...]
                while true {
                    let slice = UnsafeRawBufferPointer(rebasing: rest.prefix(largestSlice))
                    let status = step(slice, slice.count == rest.count ? Z_FINISH : Z_NO_FLUSH, piece)
                    rest = rest.dropFirst(slice.count - Int(stream.pointee.avail_in))
                    let written = piece.prefix(piece.count - Int(stream.pointee.avail_out))
                    let count = output.count - start + written.count
                    guard count <= budget else { return Z_BUF_ERROR }
                    if output.capacity < start + count { output.reserveCapacity(start + min(budget, 2 * count)) }
                    output.append(contentsOf: written)
                    if status != Z_OK { return status }
                }
            }
        }
        if status == Z_STREAM_END { return true }
        output.removeSubrange(start...)
        if status == Z_BUF_ERROR { return false }
        throw FerryError(.encodingFailed, "libz stopped with status \(status) while compressing.")
    }

    private func step(
        _ input: UnsafeRawBufferPointer, _ flush: Int32, _ output: UnsafeMutableBufferPointer<UInt8>
    ) -> Int32 {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress
        stream.pointee.avail_out = UInt32(output.count)
        defer {
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        return CZlib.deflate(stream, flush)
    }
}

/// libz refused to begin: no memory, or another version than the one compiled against.
func cannotStart(_ activity: String, _ status: Int32) -> FerryError {
    FerryError(
        .invalidConfiguration,
        "libz cannot start \(activity) (status \(status)): there is no memory, or libz is not version \(ZLIB_VERSION) "
            + "or compatible with it. Install the libz this program was built against.")
}
