#if Records
    import Ferry

    /// The name of a store, which it keeps from its first opening: 16 random bytes.
    public struct StoreID: Sendable, Hashable, CustomStringConvertible {
        let high: UInt64
        let low: UInt64

        init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }

        /// 32 hexadecimal digits.
        public var description: String { hexadecimal(high) + hexadecimal(low) }
    }

    /// One opening of a store: no two ever have the same, though a store is copied or comes back from a backup.
    public struct Epoch: Sendable, Hashable, CustomStringConvertible {
        /// How many times the store has been opened: 1 and more, at most 2^63 - 1.
        public let generation: UInt64
        /// Drawn at random at each opening, which tells copies of one store apart.
        public let nonce: UInt64

        /// The generation, and 16 hexadecimal digits of the nonce.
        public var description: String { "\(generation).\(hexadecimal(nonce))" }
    }

    /// A place in a stream: after the record of this epoch and sequence.
    struct Position: Sendable, Hashable {
        var epoch: Epoch
        var sequence: UInt64
    }

    /// The name of a record, which no other record ever has: what to deduplicate by where records go on to other systems.
    public struct RecordID: Sendable, Hashable, CustomStringConvertible {
        /// The store that it was appended to.
        public let sender: StoreID
        /// The opening of that store which it was appended in.
        public let epoch: Epoch
        /// The stream, within which records keep their order.
        public let stream: String
        /// The place in the stream: 1 and more. It grows from record to record, not always by one.
        public let sequence: UInt64

        /// Sender, epoch, stream and sequence, with a slash between each.
        public var description: String { "\(sender)/\(epoch)/\(stream)/\(sequence)" }

        /// The ``description`` in ASCII: of the stream's name every byte that is no letter, digit, hyphen or underscore is `%` and two
        /// hexadecimal digits. A gateway's messages have it as their `Nats-Msg-Id`.
        public var name: String {
            var name = "\(sender)/\(epoch)/"
            for byte in stream.utf8 {
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: name.unicodeScalars.append(Unicode.Scalar(byte))
                default:
                    let digits = String(byte, radix: 16, uppercase: true)
                    name += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
                }
            }
            return name + "/\(sequence)"
        }
    }

    /// The names of streams and peers. SQLite ends a text at its first NUL, so that two such names can become one.
    enum NameRule {
        /// The longest name of a peer, in bytes of UTF-8.
        static let longestPeer = 1024

        /// The fault of a stream's name, of at most ``RecordsMessage/longestName`` bytes; `nil` for nothing.
        static func faultOfStream(_ name: String) -> String? {
            fault("a stream's name", name, 0...RecordsMessage.longestName)
        }

        /// The fault of a peer's name, of 1 to ``longestPeer`` bytes; `nil` for nothing.
        static func faultOfPeer(_ name: String) -> String? { fault("a peer's name", name, 1...longestPeer) }

        /// - Throws: `invalidConfiguration` for a peer's name that no store can keep.
        static func checkPeer(_ name: String) throws(FerryError) {
            guard let fault = faultOfPeer(name) else { return }
            throw FerryError(
                .invalidConfiguration, "No peer can have this name: \(fault). Choose another.", fate: .nothingSent)
        }

        private static func fault(_ what: String, _ name: String, _ sizes: ClosedRange<Int>) -> String? {
            let count = name.utf8.count
            guard sizes.contains(count) else {
                return "\(what) has \(count) bytes; \(sizes.lowerBound) to \(sizes.upperBound) are allowed"
            }
            return name.utf8.contains(0) ? "\(what) has a NUL in it" : nil
        }
    }

    private func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
#endif
