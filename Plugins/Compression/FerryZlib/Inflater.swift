import CZlib
import Ferry

/// One inflate stream; see ``Deflater`` for why its `z_stream` lives on the heap.
struct Inflater: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>

    init() throws(FerryError) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let status = inflateInit2_(stream, rawDeflateWindowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else {
            stream.deallocate()
            throw cannotStart("decompressing", status)
        }
        self.stream = stream
    }

    deinit {
        _ = inflateEnd(stream)
        stream.deallocate()
    }

    /// Names what both sides know beforehand, at most 32 KiB. On a raw stream it may be set at any time (zlib.h) and
    /// fails for want of memory only.
    mutating func setDictionary(_ dictionary: [UInt8]) throws(FerryError) {
        guard !dictionary.isEmpty else { return }
        let status = inflateSetDictionary(stream, dictionary, UInt32(dictionary.count))
        guard status == Z_OK else { throw cannotStart("decompressing", status) }
    }

    /// All of `compressed`, which must be one whole stream of exactly `plainCount` plain bytes.
    ///
    /// The result is allocated once, uninitialised: no growing, no second copy, and memory that a false claim would have
    /// reserved is never touched.
    mutating func inflate(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        var failure: FerryError?
        let plain = [UInt8](unsafeUninitializedCapacity: plainCount) { plain, count in
            do throws(FerryError) {
                try fill(UnsafeMutableBufferPointer(rebasing: plain[..<plainCount]), from: compressed)
                count = plainCount
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return plain
    }

    private func fill(_ plain: UnsafeMutableBufferPointer<UInt8>, from compressed: RawSpan) throws(FerryError) {
        var consumed = 0
        var produced = 0
        var goesOn = false
        let status = compressed.withUnsafeBytes { compressed in
            while true {
                let input = UnsafeRawBufferPointer(rebasing: compressed[consumed...].prefix(largestSlice))
                let output = UnsafeMutableBufferPointer(rebasing: plain[produced...].prefix(largestSlice))
                let status = step(input, output)
                consumed += input.count - Int(stream.pointee.avail_in)
                if !output.isEmpty {
                    produced += output.count - Int(stream.pointee.avail_out)
                } else if stream.pointee.avail_out == 0 {
                    goesOn = true
                    return Z_BUF_ERROR
                }
                if status != Z_OK { return status }
            }
        }
        let place = "at byte \(consumed) of \(compressed.byteCount)"
        switch status {
        case Z_STREAM_END where produced == plain.count && consumed == compressed.byteCount:
            return
        case Z_STREAM_END where produced < plain.count:
            throw corrupt("ends \(place) with \(produced) plain bytes, \(plain.count) were stated")
        case Z_STREAM_END:
            throw corrupt("ends \(place); other bytes follow")
        case Z_BUF_ERROR where goesOn:
            throw corrupt("goes on after the \(plain.count) plain bytes that were stated, \(place)")
        case Z_BUF_ERROR:
            throw corrupt("is cut short after \(produced) of \(plain.count) plain bytes")
        default:
            let reason = stream.pointee.msg.map { String(cString: $0) } ?? "status \(status)"
            throw corrupt("is damaged \(place): \(reason)")
        }
    }

    /// One call of libz. When the result is full libz gets a separate byte to write to, so that the end of the
    /// stream can be told from a stream that goes on; a byte written there is the latter.
    private func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableBufferPointer<UInt8>
    ) -> Int32 {
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.assumingMemoryBound(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(input.count)
        defer {
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        var excess: UInt8 = 0
        return withUnsafeMutablePointer(to: &excess) { excess in
            stream.pointee.next_out = output.isEmpty ? excess : output.baseAddress
            stream.pointee.avail_out = output.isEmpty ? 1 : UInt32(output.count)
            return CZlib.inflate(stream, Z_NO_FLUSH)
        }
    }

    private func corrupt(_ what: String) -> FerryError {
        FerryError(
            .corruptCompression, "The compressed message \(what). Both sides must use the same compression settings.")
    }
}
