#if Records
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

    private func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
#endif
