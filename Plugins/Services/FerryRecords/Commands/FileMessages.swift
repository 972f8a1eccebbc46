#if Records
    public import Ferry

    /// A file for a peer, as its commands name it.
    public struct OfferedFile: Sendable, Hashable {
        /// The longest name, in bytes of UTF-8.
        public static let longestName = 200

        /// Its name in the peer's folder: 1 to ``longestName`` bytes of UTF-8 without slashes and control characters; the first is no dot.
        public let name: String
        /// Its size in bytes.
        public let size: UInt64
        /// The CRC-32C of its bytes (RFC 3720, B.4). It finds accidents; a file from a stranger needs a signature besides.
        public let checksum: UInt32

        /// Names a file.
        ///
        /// - Throws: `invalidConfiguration` for a name that no peer takes, and for more than 2^62 bytes.
        public init(_ name: String, size: UInt64, checksum: UInt32) throws(FerryError) {
            guard Self.isName(name), size <= 1 << 62 else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(name.prefix(300).debugDescription) of \(size) bytes is no file for a peer. Give a name of 1 to \(Self.longestName) "
                        + "bytes without slashes and control characters, with no dot at the beginning, and at most 2^62 bytes.",
                    fate: .nothingSent)
            }
            (self.name, self.size, self.checksum) = (name, size, checksum)
        }

        /// Whether a file can have this name.
        public static func isName(_ text: String) -> Bool {
            (1...longestName).contains(text.utf8.count) && text.utf8.first != 0x2E && !text.utf8.contains(0x2F)
                && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }

        /// The names of the commands.
        package enum Command {
            /// Asks how much of a file the peer has: the body is the file's name.
            package static let offer = "ferry-file-offer"
            /// Brings a piece of it.
            package static let piece = "ferry-file-piece"
            /// Says that all pieces were sent.
            package static let end = "ferry-file-end"
        }

        /// Size (8 bytes), checksum (4), length of the name (1), name.
        package var encoded: [UInt8] {
            var bytes: [UInt8] = []
            bytes.append(bits: size)
            for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: checksum >> shift)) }
            bytes.append(UInt8(name.utf8.count))
            return bytes + Array(name.utf8)
        }

        /// - Throws: `misbehavingPeer`.
        init(_ reader: inout MessageReader) throws(FerryError) {
            let size = try reader.fixed("the size")
            var checksum: UInt32 = 0
            for _ in 0..<4 { checksum = checksum << 8 | UInt32(try reader.byte("the checksum")) }
            let count = Int(try reader.byte("the length of the name"))
            guard let name = String(validating: try reader.take(count, "the name"), as: UTF8.self), Self.isName(name),
                size <= 1 << 62
            else { throw reader.failure("it names no file that can be taken") }
            (self.name, self.size, self.checksum) = (name, size, checksum)
        }
    }

    /// A piece of a file on its way to a peer: the file, the offset (8 bytes), the bytes.
    package struct FilePiece: Sendable, Hashable {
        let file: OfferedFile
        let offset: UInt64
        let bytes: [UInt8]

        /// A piece.
        package init(of file: OfferedFile, at offset: UInt64, _ bytes: [UInt8]) {
            (self.file, self.offset, self.bytes) = (file, offset, bytes)
        }

        /// The body of its command.
        package var encoded: [UInt8] {
            var head = file.encoded
            head.append(bits: offset)
            return head + bytes
        }

        /// - Throws: `misbehavingPeer` for bytes that are no piece, and for a piece that reaches beyond the file's end.
        init(decoding body: [UInt8]) throws(FerryError) {
            var reader = MessageReader(body)
            reader.kind = "piece of a file"
            file = try OfferedFile(&reader)
            offset = try reader.fixed("the offset")
            bytes = Array(reader.rest)
            guard offset <= file.size, UInt64(bytes.count) <= file.size - offset else {
                throw reader.failure(
                    "\(bytes.count) bytes at \(offset) reach beyond the end of the file at \(file.size)")
            }
        }
    }

    /// How much of a file a peer has: the body of its answers. The first bytes (8), and whether the file is complete (1).
    package struct FileProgress: Sendable, Hashable {
        /// How many of the first bytes are on the peer's disk.
        package let held: UInt64
        /// Whether the file has its name.
        package let isComplete: Bool

        init(held: UInt64, isComplete: Bool) { (self.held, self.isComplete) = (held, isComplete) }

        var encoded: [UInt8] {
            var bytes: [UInt8] = []
            bytes.append(bits: held)
            return bytes + [isComplete ? 1 : 0]
        }

        /// - Throws: `misbehavingPeer`.
        package init(decoding body: [UInt8]) throws(FerryError) {
            var reader = MessageReader(body)
            reader.kind = "answer about a file"
            held = try reader.fixed("the bytes that are there")
            isComplete = try reader.byte("whether it is complete") == 1
        }
    }
#endif
