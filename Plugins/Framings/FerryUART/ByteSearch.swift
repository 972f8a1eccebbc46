/// One of two bytes, looked for among 16 at once.
struct EitherByte {
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

    /// A bit for each of 16 bytes, without a jump: one that depends on the bytes is foreseen wrongly.
    @inline(__always)
    static func bits(_ matches: SIMD2<UInt64>) -> UInt64 {
        /// Each byte is 0 or 0xFF: keeps another bit of each, and adds them up in the highest byte.
        func bits(_ word: UInt64) -> UInt64 {
            ((UInt64(littleEndian: word) & 0x8040_2010_0804_0201) &* 0x0101_0101_0101_0101) >> 56
        }
        return bits(matches[0]) | bits(matches[1]) << 8
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

    /// Copies the bytes of a range to a target that has room for them; true where one of them is zero.
    @inline(__always)
    func copyFindsZero(_ range: Range<Int>, to target: UnsafeMutableRawBufferPointer) -> Bool {
        let count = range.count
        guard count > 0, let target = target.baseAddress else { return false }
        return withUnsafeBytes { buffer in
            guard let source = buffer.baseAddress.map({ $0 + range.lowerBound }) else { return false }
            let zero = EitherByte(0, 0)
            var zeros = SIMD2<UInt64>()
            func copy16(_ place: Int) {
                let bytes = source.loadUnaligned(fromByteOffset: place, as: SIMD16<UInt8>.self)
                target.storeBytes(of: bytes, toByteOffset: place, as: SIMD16<UInt8>.self)
                zeros = zeros | zero.matches(bytes)
            }
            guard count >= 16 else {
                var hasZero = false
                for place in 0..<count {
                    let byte = source.load(fromByteOffset: place, as: UInt8.self)
                    target.storeBytes(of: byte, toByteOffset: place, as: UInt8.self)
                    hasZero = hasZero || byte == 0
                }
                return hasZero
            }
            var place = 0
            while place &+ 64 <= count {
                copy16(place)
                copy16(place &+ 16)
                copy16(place &+ 32)
                copy16(place &+ 48)
                place &+= 64
            }
            while place &+ 16 <= count {
                copy16(place)
                place &+= 16
            }
            // The last 16, of which some may be copied already.
            copy16(count &- 16)
            return zeros[0] | zeros[1] != 0
        }
    }

    /// Copies the bytes from `start` to the first `a` or `b`, or to the end of the buffer, and returns the place of that. 64 and 16 bytes at
    /// a time: the target must have room for all to the end.
    ///
    /// - Parameter count: how many bytes the target has already.
    @inline(__always)
    func copy(
        upTo a: UInt8, _ b: UInt8, from start: Int, to target: UnsafeMutableRawBufferPointer, at count: Int
    ) -> Int {
        let end = byteCount
        guard start < end, let target = target.baseAddress else { return end }
        return withUnsafeBytes { source in
            guard let source = source.baseAddress else { return end }
            return EitherByte(a, b).copy(from: source, start..<end, to: target + count)
        }
    }
}

extension EitherByte {
    /// Copies the bytes of a range that is not empty to the first match, or to its end, and returns the place of that. By pointers: what
    /// buffers check at each access is known.
    @inline(__always)
    fileprivate func copy(
        from source: UnsafeRawPointer, _ range: Range<Int>, to target: UnsafeMutableRawPointer
    ) -> Int {
        let (start, end) = (range.lowerBound, range.upperBound)
        /// Copies 16 bytes; which of them match.
        func copy16(_ place: Int) -> SIMD2<UInt64> {
            let bytes = source.loadUnaligned(fromByteOffset: place, as: SIMD16<UInt8>.self)
            target.storeBytes(of: bytes, toByteOffset: place &- start, as: SIMD16<UInt8>.self)
            return matches(bytes)
        }
        /// Copies 32 bytes at one place and 32 at another behind it, which may be some of the first again; the place of the first match.
        func copy64(_ first: Int, _ second: Int) -> Int? {
            let (one, two, three, four) = (
                copy16(first), copy16(first &+ 16), copy16(second), copy16(second &+ 16)
            )
            let all = (one | two) | (three | four)
            guard all[0] | all[1] != 0 else { return nil }
            let low = Self.bits(one) | Self.bits(two) << 16
            let bits = low | Self.bits(three) << 32 | Self.bits(four) << 48
            return bits.trailingZeroBitCount &+ (low == 0 ? second &- 32 : first)
        }
        switch end &- start {
        case 64...:
            var place = start
            while place &+ 64 <= end {
                if let found = copy64(place, place &+ 32) { return found }
                place &+= 64
            }
            // The last 64 once more: those before `place` are neither.
            return place == end ? end : copy64(end &- 64, end &- 32) ?? end
        case 32...: return copy64(start, end &- 32) ?? end
        case 16...:
            let (one, two) = (copy16(start), copy16(end &- 16))
            if let found = Self.first(in: one) { return start &+ found }
            return Self.first(in: two).map { end &- 16 &+ $0 } ?? end
        default:
            for place in start..<end {
                let byte = source.load(fromByteOffset: place, as: UInt8.self)
                if byte == a[0] || byte == b[0] { return place }
                target.storeBytes(of: byte, toByteOffset: place &- start, as: UInt8.self)
            }
            return end
        }
    }
}
