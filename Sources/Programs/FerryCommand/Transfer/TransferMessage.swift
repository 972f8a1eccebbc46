import Ferry

/// What one side of a transfer says to the other: one message of a channel of bytes (`Documentation/Formats.md`).
enum TransferMessage: Equatable, Sendable {
    // From the sender.
    /// Opens the transfer. `proves`: the sender answers ``prove(count:)``.
    case hello(version: UInt8, proves: Bool = false)
    /// Names the next item.
    case item(TransferItem)
    /// The item's bytes follow from this offset on.
    case go(offset: UInt64)
    /// Bytes of the item; one line, without its end, where the item is lines.
    case data(ArraySlice<UInt8>)
    /// The item is complete: its length and its CRC-32C. Also the answer to ``prove(count:)``.
    case end(TransferContent)
    /// The item is not sent, or not to its end, and why.
    case giveUp(String)
    /// Nothing else comes.
    case goodbye

    // From the receiver.
    /// Answers `hello`.
    case welcome(version: UInt8)
    /// Something of the item's name may be here. Before the receiver says more, the sender shows that it has the same: the
    /// content of its first `count` bytes.
    case prove(count: UInt64)
    /// So much of the item is here already; `isWhole` when it is not a part.
    case have(TransferContent, isWhole: Bool)
    /// The item is here, checked and kept.
    case done
    /// The item is not taken, and why.
    case refused(String)

    /// The version of the protocol.
    static let version: UInt8 = 1
    /// The most bytes of a reason or a name.
    static let maximumText = 4096
    /// The most bytes of `data`.
    static let maximumData = 1 << 20
}

/// Bytes by their number and checksum.
struct TransferContent: Hashable, Sendable {
    var count: UInt64 = 0
    /// CRC-32C (RFC 3720, B.4). It finds accidents; against people only encryption below helps.
    var checksum: UInt32 = 0
}

/// Something that is sent as a whole.
struct TransferItem: Hashable, Sendable {
    enum Kind: UInt8, Sendable { case file = 0, folder = 1, stream = 2, lines = 3 }

    let kind: Kind
    /// Permissions as in POSIX, 9 bits; nil when not known.
    let mode: UInt16?
    /// When it was changed, in seconds since 1970; 0 when not known.
    let modified: UInt64
    /// How many bytes it has, if that is known before.
    let size: UInt64?
    /// A path within the transfer, parted by `/`.
    let name: String

    init(kind: Kind, mode: UInt16? = nil, modified: UInt64 = 0, size: UInt64? = nil, name: String) {
        (self.kind, self.mode, self.modified, self.size, self.name) = (kind, mode, modified, size, name)
    }
}

extension TransferMessage {
    private enum Code: UInt8 {
        case hello = 0x01, item, data, end, goodbye, go, giveUp
        case welcome = 0x11, have, done, refused, prove
    }

    /// In a sender's greeting, after the version: it answers ``prove(count:)``.
    private static let proves: UInt8 = 1
    /// In an item's permissions: they are known, though none of the nine bits is set.
    private static let knownMode: UInt16 = 0x8000

    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        func begin(_ code: Code) { bytes.append(code.rawValue) }
        switch self {
        case .hello(let version, let proves):
            begin(.hello)
            bytes.append(version)
            if proves { bytes.append(Self.proves) }
        case .item(let item):
            begin(.item)
            let mode = item.mode.map { $0 & 0o777 == 0 ? Self.knownMode : $0 & 0o777 } ?? 0
            bytes += [item.kind.rawValue, UInt8(mode >> 8), UInt8(truncatingIfNeeded: mode)]
            Varint.append(item.modified, to: &bytes)
            Varint.append(item.size.map { $0 &+ 1 } ?? 0, to: &bytes)
            bytes += item.name.utf8
        case .data(let data):
            bytes.reserveCapacity(1 + data.count)
            begin(.data)
            bytes += data
        case .end(let content):
            begin(.end)
            content.append(to: &bytes)
        case .goodbye: begin(.goodbye)
        case .go(let offset):
            begin(.go)
            Varint.append(offset, to: &bytes)
        case .giveUp(let reason):
            begin(.giveUp)
            bytes += reason.utf8.prefix(Self.maximumText)
        case .welcome(let version):
            begin(.welcome)
            bytes.append(version)
        case .have(let content, let isWhole):
            begin(.have)
            bytes.append(isWhole ? 1 : 0)
            content.append(to: &bytes)
        case .prove(let count):
            begin(.prove)
            Varint.append(count, to: &bytes)
        case .done: begin(.done)
        case .refused(let reason):
            begin(.refused)
            bytes += reason.utf8.prefix(Self.maximumText)
        }
        return bytes
    }

    /// Reads a message.
    ///
    /// - Throws: `malformedStream` for bytes that are none.
    init(_ bytes: [UInt8]) throws(FerryError) {
        guard let first = bytes.first, let code = Code(rawValue: first) else {
            throw .noTransfer("a message \(bytes.first.map { "of kind \($0)" } ?? "without bytes") came")
        }
        var reader = TransferReader(rest: bytes[1...])
        switch code {
        case .hello:
            let version = try reader.byte()
            self = .hello(version: version, proves: reader.rest.first.map { $0 & Self.proves != 0 } ?? false)
        case .item: self = .item(try reader.item(knownMode: Self.knownMode))
        case .data: self = .data(reader.remaining())
        case .end: self = .end(try reader.content())
        case .goodbye: self = .goodbye
        case .go: self = .go(offset: try reader.number())
        case .giveUp: self = .giveUp(reader.text())
        case .welcome: self = .welcome(version: try reader.byte())
        case .have:
            let isWhole = try reader.byte()
            guard isWhole <= 1 else { throw .noTransfer("an answer has \(isWhole) where it says whether it is whole") }
            self = .have(try reader.content(), isWhole: isWhole == 1)
        case .prove: self = .prove(count: try reader.number())
        case .done: self = .done
        case .refused: self = .refused(reader.text())
        }
        // Later versions may add to a greeting.
        if code == .hello || code == .welcome { return }
        guard reader.rest.isEmpty else { throw .noTransfer("a message has \(reader.rest.count) bytes too many") }
    }
}

extension TransferContent {
    fileprivate func append(to bytes: inout [UInt8]) {
        Varint.append(count, to: &bytes)
        for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: checksum >> shift)) }
    }
}

/// Reads a message's fields in their order.
private struct TransferReader {
    var rest: ArraySlice<UInt8>

    mutating func byte() throws(FerryError) -> UInt8 {
        guard let byte = rest.popFirst() else { throw .noTransfer("a message was cut short") }
        return byte
    }

    mutating func number() throws(FerryError) -> UInt64 {
        var decoder = Varint.Decoder()
        while true {
            let byte = try byte()
            do throws(Varint.Failure) {
                if let number = try decoder.push(byte) { return number }
            } catch { throw .noTransfer("a number is \(error)") }
        }
    }

    mutating func content() throws(FerryError) -> TransferContent {
        let count = try number()
        var checksum: UInt32 = 0
        for _ in 0..<4 { checksum = checksum << 8 | UInt32(try byte()) }
        return TransferContent(count: count, checksum: checksum)
    }

    mutating func item(knownMode: UInt16) throws(FerryError) -> TransferItem {
        let code = try byte()
        guard let kind = TransferItem.Kind(rawValue: code) else { throw .noTransfer("an item of kind \(code) came") }
        let mode = UInt16(try byte()) << 8 | UInt16(try byte())
        let modified = try number()
        let size = try number()
        guard rest.count <= TransferMessage.maximumText, let name = String(validating: remaining(), as: UTF8.self)
        else {
            throw .noTransfer("an item's name is too long, or no UTF-8")
        }
        let bits = mode & 0o777
        return TransferItem(
            kind: kind, mode: bits == 0 && mode & knownMode == 0 ? nil : bits, modified: modified,
            size: size == 0 ? nil : size - 1, name: name)
    }

    mutating func remaining() -> ArraySlice<UInt8> {
        defer { rest = [] }
        return rest
    }

    /// For people, so that bytes that are no UTF-8 are replaced.
    mutating func text() -> String { String(decoding: remaining().prefix(TransferMessage.maximumText), as: UTF8.self) }
}

extension FerryError {
    /// What came is not the protocol of a transfer, or not in its order.
    static func noTransfer(_ what: String) -> FerryError {
        FerryError(
            .malformedStream,
            "The other side does not speak the protocol of ferry send and ferry receive: \(what). Check that it runs one of "
                + "the two, of the same version, with the same --framing.")
    }
}
