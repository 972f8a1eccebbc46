public import Ferry

/// What a device of Polar's is asked for.
///
/// A request is the length of its header (2 bytes, the less significant first), the header and data. The header is `PbPFtpOperation` of
/// Protocol Buffers: a command and a path. A query is its number with the top bit set (2 bytes, the less significant first) and parameters.
public struct PFTPRequest: Sendable, Hashable {
    /// The commands of `PbPFtpOperation`.
    private enum Command: UInt8 { case get, put, merge, remove }

    /// The length of the header, or the query's number.
    private let lead: UInt16
    private let rest: [UInt8]
    /// The same for people.
    let words: String
    /// Whether the header's length can be said.
    private let fits: Bool

    private init(_ command: Command, _ path: String, _ data: [UInt8] = []) {
        let name = Array(path.utf8)
        var header: [UInt8] = [0x08, command.rawValue, 0x12]
        Varint.append(UInt64(name.count), to: &header)
        header += name
        lead = UInt16(truncatingIfNeeded: header.count)
        fits = header.count <= 0xFFFF
        rest = header + data
        words = "\(command) \(path)"
    }

    private init(query number: UInt16, _ parameters: [UInt8]) {
        (lead, rest, words, fits) = (number | 0x8000, parameters, "query \(number)", true)
    }

    /// The message.
    ///
    /// - Throws: `encodingFailed` for a path of more than some 65 500 bytes.
    public func bytes() throws(FerryError) -> [UInt8] {
        guard fits else {
            throw FerryError(
                .encodingFailed, "The path \(words.prefix(40))... is longer than a request can say.", fate: .nothingSent
            )
        }
        return [UInt8(lead & 0xFF), UInt8(lead >> 8)] + rest
    }

    /// For a file's bytes, or a folder's list.
    ///
    /// - Parameter path: from the root; a folder's ends with a slash, such as `/U/0/`.
    public static func get(_ path: String) -> PFTPRequest { PFTPRequest(.get, path) }

    /// To write a file.
    ///
    /// - Parameters:
    ///   - path: from the root.
    ///   - bytes: all of the file.
    public static func put(_ path: String, _ bytes: [UInt8]) -> PFTPRequest { PFTPRequest(.put, path, bytes) }

    /// To remove a file or a folder.
    ///
    /// - Parameter path: from the root.
    public static func remove(_ path: String) -> PFTPRequest { PFTPRequest(.remove, path) }

    /// A query.
    ///
    /// - Parameters:
    ///   - number: which; the top bit is set on the way.
    ///   - parameters: a message of Protocol Buffers.
    public static func query(_ number: UInt16, _ parameters: [UInt8] = []) -> PFTPRequest {
        PFTPRequest(query: number, parameters)
    }
}

/// A file or folder of a device of Polar's.
public struct PFTPEntry: Sendable, Hashable {
    /// Its name; a folder's ends with a slash.
    public let name: String
    /// How many bytes it has; 0 for a folder.
    public let size: UInt64

    /// Reads a folder's list: `PbPFtpDirectory` of Protocol Buffers. Fields that are not known are passed over.
    ///
    /// - Returns: nil for other bytes.
    public static func list(in bytes: [UInt8]) -> [PFTPEntry]? {
        var fields = ProtobufFields(bytes[...])
        var entries: [PFTPEntry] = []
        while let field = fields.next() {
            guard case (1, .bytes(let bytes)) = field else { continue }
            guard let entry = PFTPEntry(bytes) else { return nil }
            entries.append(entry)
        }
        return fields.isWhole ? entries : nil
    }

    private init?(_ bytes: ArraySlice<UInt8>) {
        var fields = ProtobufFields(bytes)
        var (name, size): (String?, UInt64?)
        while let field = fields.next() {
            switch field {
            case (1, .bytes(let bytes)): name = String(validating: bytes, as: UTF8.self)
            case (2, .number(let number)): size = number
            default: break
            }
        }
        guard fields.isWhole, let name else { return nil }
        (self.name, self.size) = (name, size ?? 0)
    }
}

/// The fields of a message of Protocol Buffers, as far as a folder's list needs them.
private struct ProtobufFields {
    enum Value {
        case number(UInt64)
        case bytes(ArraySlice<UInt8>)
        /// Of 4 or 8 bytes.
        case fixed
    }

    private var rest: ArraySlice<UInt8>
    /// Whether all could be read so far.
    private(set) var isWhole = true

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func next() -> (field: UInt64, value: Value)? {
        guard !rest.isEmpty else { return nil }
        guard let key = varint(), let value = value(key & 7) else {
            isWhole = false
            return nil
        }
        return (key >> 3, value)
    }

    private mutating func value(_ type: UInt64) -> Value? {
        switch type {
        case 0: varint().map(Value.number)
        case 1: take(8).map { _ in .fixed }
        case 2: varint().flatMap { take($0) }.map(Value.bytes)
        case 5: take(4).map { _ in .fixed }
        default: nil
        }
    }

    private mutating func take(_ count: UInt64) -> ArraySlice<UInt8>? {
        guard count <= UInt64(rest.count) else { return nil }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    /// Protocol Buffers permit longer forms than the shortest, which `Varint.Decoder` refuses.
    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst(), shift < 63 || byte <= 1 else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }
}
