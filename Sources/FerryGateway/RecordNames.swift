#if NATS && Records
    import FerryFleet
    import FerryNATS
    import FerryRecords

    /// How a record is named and addressed in a stream; `Documentation/Gateway.md` tells consumers.
    enum RecordNames {
        /// Visible ASCII stays, but for what has a meaning in subjects and names; any other byte becomes `%` and two digits.
        static func escaped(_ text: String, with mark: UInt8 = 0x25) -> String {
            var bytes: [UInt8] = []
            bytes.reserveCapacity(text.utf8.count)
            for byte in text.utf8 {
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: bytes.append(byte)
                default:
                    bytes.append(mark)
                    for digit in [byte >> 4, byte & 15] { bytes.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Whether subjects can begin with it.
        static func isPrefix(_ prefix: String) -> Bool {
            let words = prefix.split(separator: ".", omittingEmptySubsequences: false)
            return !words.isEmpty && words.allSatisfy { !$0.isEmpty && escaped(String($0)) == $0 }
        }

        /// `sender/epoch/stream/sequence`: what consumers upsert by.
        static func id(_ record: RecordID) -> String {
            "\(record.sender)/\(record.epoch)/\(escaped(record.stream))/\(record.sequence)"
        }

        /// `prefix.sender.stream`; a stream without a name is `%`.
        static func subject(_ record: RecordID, _ prefix: String) -> String {
            "\(prefix).\(record.sender).\(record.stream.isEmpty ? "%" : escaped(record.stream))"
        }

        static func headers(_ record: RecordID, peer: String, gateway: String, token: FencingToken?)
            -> [NATSMessage.Header]
        {
            let headers = [
                // No header has an empty value.
                NATSMessage.Header("Ferry-Peer", peer.isEmpty ? "%" : escaped(peer)),
                NATSMessage.Header("Ferry-Stream", record.stream.isEmpty ? "%" : escaped(record.stream)),
                NATSMessage.Header("Ferry-Epoch", "\(record.epoch)"),
                NATSMessage.Header("Ferry-Sequence", "\(record.sequence)"),
                NATSMessage.Header("Ferry-Gateway", escaped(gateway)),
            ]
            return headers + (token.map { [NATSMessage.Header("Ferry-Token", "\($0)")] } ?? [])
        }
    }
#endif
