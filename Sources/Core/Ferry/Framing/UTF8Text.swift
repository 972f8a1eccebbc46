/// UTF-8 for codecs and for the text mode of ``EndOfMessageFraming``, on systems without `UTF8Span` (Apple's before 26) too.
package enum UTF8Text {
    /// The offset of the first byte that is not part of a well-formed scalar (The Unicode Standard, table 3-7), or nil.
    ///
    /// - Parameters:
    ///   - bytes: the text, perhaps with other bytes around it.
    ///   - range: where in them the text stands; all of them by default.
    package static func firstInvalidOffset(in bytes: [UInt8], _ range: Range<Int>? = nil) -> Int? {
        let range = range ?? 0..<bytes.count
        return bytes.withUnsafeBytes { bytes in
            var parser = Unicode.UTF8.ForwardParser()
            var offset = range.lowerBound
            while offset < range.upperBound {
                // Eight ASCII bytes at a time; most text is.
                if range.upperBound - offset >= 8,
                    bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
                {
                    offset += 8
                    continue
                }
                if bytes[offset] < 0x80 {
                    offset += 1
                    continue
                }
                var rest = bytes[offset..<range.upperBound].makeIterator()
                guard case .valid(let scalar) = parser.parseScalar(from: &rest) else { return offset }
                // Each scalar is parsed by itself; what the parser has read ahead is read again.
                parser = Unicode.UTF8.ForwardParser()
                offset += scalar.count
            }
            return nil
        }
    }

    /// Whether each byte in `range` of `bytes` is ASCII.
    package static func isASCII(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            var bits: UInt8 = 0
            for byte in bytes[range] { bits |= byte }
            return bits < 0x80
        }
    }

    /// The largest offset of at most `offset` at which well-formed text can be cut without splitting a scalar.
    static func lastBoundary(in text: RawSpan, notAfter offset: Int) -> Int {
        guard offset < text.byteCount else { return text.byteCount }
        var boundary = offset
        while boundary > 0, isContinuation(text.unsafeLoad(fromByteOffset: boundary, as: UInt8.self)) { boundary -= 1 }
        return boundary
    }

    private static func isContinuation(_ byte: UInt8) -> Bool { byte & 0xC0 == 0x80 }
}
