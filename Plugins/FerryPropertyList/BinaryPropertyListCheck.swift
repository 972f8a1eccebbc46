import Ferry

/// Whether bytes are a sound binary property list: every offset, count and reference in range, no object within itself,
/// nothing deeper or larger than allowed. The format is described at the head of CFBinaryPList.c.
///
/// Written without recursion, in time proportional to the message: an object that is referred to many times is measured
/// once.
struct BinaryPropertyListCheck {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let objectCount: Int
    private let topObject: Int
    private let tableOffset: Int

    private static let headerCount = 8
    private static let trailerCount = 32
    private static let sizePerValue = 8

    /// Reads the trailer, the message's last 32 bytes.
    init(_ bytes: [UInt8]) throws(FerryError) {
        self.bytes = bytes
        let trailer = bytes.count - Self.trailerCount
        guard trailer > Self.headerCount else {
            throw Self.failure("is cut short: it has \(bytes.count) bytes, fewer than header and trailer")
        }
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
            throw Self.failure(
                "states integers of \(offsetSize) and \(referenceSize) bytes in its trailer at byte \(trailer)")
        }
        let count = Self.integer(bytes, at: trailer + 8, size: 8)
        let top = Self.integer(bytes, at: trailer + 16, size: 8)
        let table = Self.integer(bytes, at: trailer + 24, size: 8)
        guard table > UInt64(Self.headerCount), table < UInt64(trailer), count <= UInt64(trailer), top < count,
            UInt64(trailer) - table == count * UInt64(offsetSize)
        else {
            throw Self.failure(
                "states \(count) objects, of which \(top) is the top, and an offset table at byte \(table) "
                    + "in its trailer at byte \(trailer)")
        }
        objectCount = Int(count)
        topObject = Int(top)
        tableOffset = Int(table)
    }

    /// A container whose references are being followed.
    private struct Frame {
        var object: Int
        var next: Int
        var end: Int
        var size: Int
        var height: Int
    }

    /// What is known of an object: its size with everything below it, and how many containers it is high.
    private enum Measure {
        case unknown
        case open
        case done(size: Int, height: Int)
    }

    /// Follows every reference from the top object.
    ///
    /// - Throws: `decodingFailed` with what is wrong, and the object's number and byte.
    func run(maximumDepth: Int, maximumExpandedSize: Int) throws(FerryError) {
        var measures = [Measure](repeating: .unknown, count: objectCount)
        var frames: [Frame] = []
        var pending: Int? = topObject
        while true {
            var finished: (size: Int, height: Int)?
            if let object = pending {
                pending = nil
                switch measures[object] {
                case .open:
                    throw Self.failure("has an object that contains itself: number \(object)")
                case .done(let size, let height):
                    finished = (size, height)
                case .unknown:
                    let extent = try extent(of: object)
                    if extent.isContainer {
                        measures[object] = .open
                        frames.append(
                            Frame(
                                object: object, next: extent.start, end: extent.end, size: Self.sizePerValue, height: 1)
                        )
                    } else {
                        let size = Self.sizePerValue + extent.end - extent.start
                        measures[object] = .done(size: size, height: 0)
                        finished = (size, 0)
                    }
                }
            } else if let frame = frames.last, frame.next == frame.end {
                frames.removeLast()
                measures[frame.object] = .done(size: frame.size, height: frame.height)
                finished = (frame.size, frame.height)
            }
            guard frames.count + (finished?.height ?? 0) <= maximumDepth else {
                throw Self.failure("nests deeper than \(maximumDepth) (PropertyListCodec.maximumDepth)")
            }
            if let finished {
                guard finished.size <= maximumExpandedSize else {
                    throw tooLarge(finished.size, maximumExpandedSize)
                }
                guard !frames.isEmpty else { return }
                let last = frames.count - 1
                frames[last].size += finished.size  // both at most maximumExpandedSize and the message's size
                frames[last].height = max(frames[last].height, finished.height + 1)
                guard frames[last].size <= maximumExpandedSize else {
                    throw tooLarge(frames[last].size, maximumExpandedSize)
                }
            }
            if let frame = frames.last, frame.next < frame.end {
                let reference = Self.integer(bytes, at: frame.next, size: referenceSize)
                guard reference < UInt64(objectCount) else {
                    throw Self.failure("refers to object \(reference) of \(objectCount) at byte \(frame.next)")
                }
                frames[frames.count - 1].next += referenceSize
                pending = Int(reference)
            }
        }
    }

    /// Where an object's content is: a container's references, or a leaf's bytes.
    private func extent(of object: Int) throws(FerryError) -> (start: Int, end: Int, isContainer: Bool) {
        let entry = Self.integer(bytes, at: tableOffset + object * offsetSize, size: offsetSize)
        guard entry >= UInt64(Self.headerCount), entry < UInt64(tableOffset) else {
            throw Self.failure("places object \(object) at byte \(entry), outside its objects")
        }
        let offset = Int(entry)
        let marker = bytes[offset]
        let low = Int(marker & 0x0F)
        var start = offset + 1
        let unit: Int
        var count = low
        switch marker >> 4 {
        case 0x0 where marker == 0x00 || marker == 0x08 || marker == 0x09: (unit, count) = (1, 0)
        case 0x1 where low <= 4: (unit, count) = (1, 1 << low)
        case 0x2 where low == 2 || low == 3: (unit, count) = (1, 1 << low)
        case 0x3 where low == 3: (unit, count) = (1, 8)
        case 0x4, 0x5: (unit, count) = (1, try self.count(low, &start))
        case 0x6: (unit, count) = (2, try self.count(low, &start))
        case 0x8: (unit, count) = (1, low + 1)
        case 0xA, 0xC: (unit, count) = (referenceSize, try self.count(low, &start))
        case 0xD: (unit, count) = (2 * referenceSize, try self.count(low, &start))
        default: throw Self.failure("has an object of unknown kind \(marker) at byte \(offset)")
        }
        guard start <= tableOffset, count <= (tableOffset - start) / unit else {
            throw Self.failure("has an object of \(count) elements at byte \(offset), more than the message holds")
        }
        if marker == 0x14, bytes[start..<start + 8].contains(where: { $0 != 0 }) {
            throw Self.failure("has an integer above 64 bits at byte \(offset)")
        }
        return (start, start + count * unit, [0xA, 0xC, 0xD].contains(marker >> 4))
    }

    /// A count below 15 stands in the marker; a larger one follows as an integer object, which `start` is moved past.
    private func count(_ low: Int, _ start: inout Int) throws(FerryError) -> Int {
        guard low == 0x0F else { return low }
        guard start < tableOffset, bytes[start] & 0xF0 == 0x10, bytes[start] & 0x0F <= 3 else {
            throw Self.failure("has an object without a proper count at byte \(start)")
        }
        let size = 1 << Int(bytes[start] & 0x0F)
        guard start + 1 + size <= tableOffset else {
            throw Self.failure("has a count that is cut short at byte \(start)")
        }
        let count = Self.integer(bytes, at: start + 1, size: size)
        guard count <= UInt64(bytes.count) else {
            throw Self.failure("has an object of \(count) elements at byte \(start), more than the message holds")
        }
        start += 1 + size
        return Int(count)
    }

    /// A big-endian integer of 1 to 8 bytes. The caller has checked the range.
    private static func integer(_ bytes: [UInt8], at offset: Int, size: Int) -> UInt64 {
        bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func tooLarge(_ size: Int, _ limit: Int) -> FerryError {
        Self.failure(
            "stands for \(size) bytes or more, as it refers to values many times; the limit is \(limit) "
                + "(PropertyListCodec.maximumExpandedSize)")
    }

    private static func failure(_ what: String) -> FerryError {
        FerryError(
            .decodingFailed,
            "The received binary property list \(what). Check that the peer sends what it means to send.")
    }
}
