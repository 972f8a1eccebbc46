import Ferry

/// Whether bytes are a sound binary property list: every offset, count and reference in range, no object within itself,
/// nothing deeper or larger than allowed, each key once in its dictionary, every date one of Foundation's calendars. The
/// format is described at the head of CFBinaryPList.c.
///
/// Written without recursion: an object that is referred to many times is measured once, and a key is compared once in each
/// dictionary, which the largest size bounds.
struct BinaryPropertyListCheck {
    private let bytes: [UInt8]
    private let origin: PropertyListOrigin
    private let offsetSize: Int
    private let referenceSize: Int
    private let objectCount: Int
    private let topObject: Int
    private let tableOffset: Int

    private static let headerCount = 8
    private static let trailerCount = 32
    private static let sizePerValue = 8

    /// Whether the property list has values that do not tell what they were made from, the text `$null`, or a date that is
    /// refused.
    private(set) var isAmbiguous = false

    /// The size of the keys that were compared, each counted once for each dictionary it is in.
    private var comparedSize = 0

    /// Reads the trailer, the message's last 32 bytes.
    init(_ bytes: [UInt8], origin: PropertyListOrigin = .peer) throws(FerryError) {
        self.bytes = bytes
        self.origin = origin
        let trailer = bytes.count - Self.trailerCount
        guard trailer > Self.headerCount else {
            throw Self.failure("is cut short: it has \(bytes.count) bytes, fewer than header and trailer", origin)
        }
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
            throw Self.failure(
                "states integers of \(offsetSize) and \(referenceSize) bytes in its trailer at byte \(trailer)", origin)
        }
        let count = Self.integer(bytes, at: trailer + 8, size: 8)
        let top = Self.integer(bytes, at: trailer + 16, size: 8)
        let table = Self.integer(bytes, at: trailer + 24, size: 8)
        guard table > UInt64(Self.headerCount), table < UInt64(trailer), count <= UInt64(trailer), top < count,
            UInt64(trailer) - table == count * UInt64(offsetSize)
        else {
            throw Self.failure(
                "states \(count) objects, of which \(top) is the top, and an offset table at byte \(table) "
                    + "in its trailer at byte \(trailer)", origin)
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

    /// The measure of an object: its size with everything below it, and how many containers it is high.
    private enum Measure {
        case unknown
        case open
        case done(size: Int, height: Int)
    }

    /// Follows every reference from the top object.
    ///
    /// - Throws: `decodingFailed` with the defect, and the object's number and byte.
    mutating func run(maximumDepth: Int, maximumExpandedSize: Int) throws(FerryError) {
        var measures = [Measure](repeating: .unknown, count: objectCount)
        var frames: [Frame] = []
        var pending: Int? = topObject
        while true {
            var finished: (size: Int, height: Int)?
            if let object = pending {
                pending = nil
                switch measures[object] {
                case .open:
                    throw failure("has an object that contains itself: number \(object)")
                case .done(let size, let height):
                    finished = (size, height)
                case .unknown:
                    let extent = try extent(of: object)
                    if extent.isContainer {
                        measures[object] = .open
                        if extent.isDictionary { try checkKeys(extent, maximumExpandedSize) }
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
                throw failure("nests deeper than \(maximumDepth) (PropertyListCodec.maximumDepth)")
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
                    throw failure("refers to object \(reference) of \(objectCount) at byte \(frame.next)")
                }
                frames[frames.count - 1].next += referenceSize
                pending = Int(reference)
            }
        }
    }

    /// Where an object's content is: a container's references, or a leaf's bytes.
    private struct Extent {
        var marker: UInt8
        var start: Int
        var end: Int
        var count: Int

        var isDictionary: Bool { marker >> 4 == 0xD }
        var isContainer: Bool { [0xA, 0xC, 0xD].contains(marker >> 4) }
    }

    private mutating func extent(of object: Int) throws(FerryError) -> Extent {
        let entry = Self.integer(bytes, at: tableOffset + object * offsetSize, size: offsetSize)
        guard entry >= UInt64(Self.headerCount), entry < UInt64(tableOffset) else {
            throw failure("places object \(object) at byte \(entry), outside its objects")
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
        default: throw failure("has an object of unknown kind \(marker) at byte \(offset)")
        }
        guard start <= tableOffset, count <= (tableOffset - start) / unit else {
            throw failure("has an object of \(count) elements at byte \(offset), more than the message holds")
        }
        if marker == 0x14, bytes[start..<start + 8].contains(where: { $0 != 0 }) {
            throw failure("has an integer above 64 bits at byte \(offset)")
        }
        if marker == 0x33 {
            let seconds = Double(bitPattern: Self.integer(bytes, at: start, size: 8))
            if let obstacle = CodedDate.obstacle(seconds) {
                // A coder's date is named by its place in the message.
                guard case .coder = origin else {
                    throw failure("has a date that is none at byte \(offset). \(obstacle)")
                }
                isAmbiguous = true
            }
        }
        let extent = Extent(marker: marker, start: start, end: start + count * unit, count: count)
        if isNull(extent) { isAmbiguous = true }
        return extent
    }

    /// The text that Foundation's coders use for nil.
    private func isNull(_ extent: Extent) -> Bool {
        extent.marker == 0x55 && bytes[extent.start..<extent.end].elementsEqual("$null".utf8)
    }

    /// A dictionary's keys are different strings. A coder's are.
    private mutating func checkKeys(_ dictionary: Extent, _ maximumExpandedSize: Int) throws(FerryError) {
        var keys = DictionaryKeys()
        let end = dictionary.start + dictionary.count * referenceSize
        for place in stride(from: dictionary.start, to: end, by: referenceSize) {
            let reference = Self.integer(bytes, at: place, size: referenceSize)
            guard reference < UInt64(objectCount) else {
                throw failure("refers to object \(reference) of \(objectCount) at byte \(place)")
            }
            let extent = try extent(of: Int(reference))
            guard !isNull(extent) else {
                throw failure("has the key \"$null\", which Foundation cannot read, at byte \(extent.start)")
            }
            guard case .peer = origin, dictionary.count > 1 else { continue }
            // Strings may overlap, so the keys may be longer than the message.
            comparedSize += Self.sizePerValue + extent.end - extent.start
            guard comparedSize <= maximumExpandedSize else { throw tooLarge(comparedSize, maximumExpandedSize) }
            guard let key = text(extent), !keys.insert(key) else { continue }
            throw failure("has the key \(key.debugDescription) twice in one dictionary, at byte \(extent.start)")
        }
    }

    /// A string; nil for other kinds, which Foundation refuses as keys.
    private func text(_ extent: Extent) -> String? {
        let content = bytes[extent.start..<extent.end]
        switch extent.marker >> 4 {
        case 0x5: return String(decoding: content, as: UTF8.self)
        case 0x6:
            let units = stride(from: extent.start, to: extent.end, by: 2).map {
                UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
            }
            return String(decoding: units, as: UTF16.self)
        default: return nil
        }
    }

    /// A count below 15 stands in the marker; a larger one follows as an integer object, which `start` is moved past.
    private func count(_ low: Int, _ start: inout Int) throws(FerryError) -> Int {
        guard low == 0x0F else { return low }
        guard start < tableOffset, bytes[start] & 0xF0 == 0x10, bytes[start] & 0x0F <= 3 else {
            throw failure("has an object without a proper count at byte \(start)")
        }
        let size = 1 << Int(bytes[start] & 0x0F)
        guard start + 1 + size <= tableOffset else {
            throw failure("has a count that is cut short at byte \(start)")
        }
        let count = Self.integer(bytes, at: start + 1, size: size)
        guard count <= UInt64(bytes.count) else {
            throw failure("has an object of \(count) elements at byte \(start), more than the message holds")
        }
        start += 1 + size
        return Int(count)
    }

    /// A big-endian integer of 1 to 8 bytes. The caller has checked the range.
    private static func integer(_ bytes: [UInt8], at offset: Int, size: Int) -> UInt64 {
        bytes[offset..<offset + size].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func tooLarge(_ size: Int, _ limit: Int) -> FerryError {
        failure(
            "stands for \(size) bytes or more, as it refers to values many times; the limit is \(limit) "
                + "(PropertyListCodec.maximumExpandedSize)")
    }

    private func failure(_ what: String) -> FerryError { Self.failure(what, origin) }

    private static func failure(_ what: String, _ origin: PropertyListOrigin) -> FerryError {
        switch origin {
        case .peer:
            FerryError(
                .decodingFailed,
                "The received binary property list \(what). Check that the peer sends what it means to send.")
        case .coder: origin.failure("it \(what)")
        }
    }
}
