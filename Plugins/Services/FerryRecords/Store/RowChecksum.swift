#if Records
    import CFerryChecksum

    /// The CRC-32C of a row, over the row's values in the order of `Documentation/Records.md`: it finds flipped bits that SQLite
    /// takes for values.
    struct RowChecksum: Equatable {
        /// A row of one table does not pass as one of another.
        enum Table: UInt8 {
            case store = 1
            case opening, peer, outbound, inbound, position, waiting, arrived
            /// No table: what stands in the file of marks.
            case mark
            case command
        }

        private var value: UInt32

        init(_ table: Table) {
            var tag = table.rawValue
            value = ferry_crc32c(0, &tag, 1)
        }

        /// Adds a number, 8 bytes, the least significant first. NULL counts as -2^63.
        mutating func add(_ number: Int64?) {
            var bytes = (number ?? .min).littleEndian
            value = ferry_crc32c(value, &bytes, 8)
        }

        /// Adds 64 bits.
        mutating func add(bits: UInt64?) { add(bits.map(Int64.init(bitPattern:))) }

        /// Adds a text: its length, and its UTF-8.
        mutating func add(_ text: String) {
            add(Int64(text.utf8.count))
            add(Array(text.utf8))
        }

        /// Adds a record.
        mutating func add(_ bytes: [UInt8]) {
            guard !bytes.isEmpty else { return }
            value = bytes.withUnsafeBytes { ferry_crc32c(value, $0.baseAddress, $0.count) }
        }

        /// What the column `checksum` has: the 32 bits as a number with a sign, which SQLite keeps in at most 4 bytes.
        var column: Int64 { Int64(Int32(bitPattern: value)) }
    }
#endif
