#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import FerryRecords

    /// How a record is named and addressed in a stream; `Documentation/Gateway.md` tells consumers.
    enum RecordNames {
        /// Visible ASCII stays, but for characters that have a meaning in subjects and names; any other byte becomes `%` and two digits.
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

        /// What ``escaped(_:with:)`` has made of a text; nil for what it makes of none.
        static func unescaped(_ text: some StringProtocol, with mark: UInt8 = 0x25) -> String? {
            let original = String(text)
            var bytes: [UInt8] = []
            var rest = Array(text.utf8)[...]
            while let byte = rest.popFirst() {
                guard byte == mark else {
                    bytes.append(byte)
                    continue
                }
                guard rest.count >= 2,
                    let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            }
            // Digits in lower case and a sign are read as numbers too, and no text is escaped so.
            return String(validating: bytes, as: UTF8.self).flatMap { escaped($0, with: mark) == original ? $0 : nil }
        }

        /// A word of a subject, or a header's value, neither of which is ever empty.
        static func word(_ text: String) -> String { text.isEmpty ? "%" : escaped(text) }

        /// What ``word(_:)`` has made a word of.
        static func name(_ word: some StringProtocol) -> String? { word == "%" ? "" : unescaped(word) }

        /// - Throws: `invalidConfiguration` for what cannot begin subjects, or name a stream.
        static func check(prefix: String, stream: String) throws(FerryError) {
            guard isPrefix(prefix) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(prefix.debugDescription) cannot begin subjects: use words of letters, digits, - and _, with dots between them."
                )
            }
            guard !stream.isEmpty, escaped(stream) == stream else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(stream.debugDescription) is no name for a stream: use letters, digits, - and _.")
            }
        }

        /// Whether subjects can begin with it.
        static func isPrefix(_ prefix: String) -> Bool {
            let words = prefix.split(separator: ".", omittingEmptySubsequences: false)
            return !words.isEmpty && words.allSatisfy { !$0.isEmpty && escaped(String($0)) == $0 }
        }
    }

    /// What the names of a stream's records have in common.
    struct StreamNames: Sendable {
        /// `prefix.sender.stream`; a stream without a name is `%`. The sender is its store, or `key-` and the fingerprint of the key
        /// that it has proven: a peer that says another's store has another name.
        let subject: String
        /// The same two names for an outlet, which escapes them itself.
        let lane: OutletMessage.Lane
        private let record: RecordID
        private let peer: String
        private let key: String?
        let token: FencingToken?
        /// `sender/epoch/stream/`.
        private let idPrefix: String
        private let before: [NATSMessage.Header]
        private let after: [NATSMessage.Header]

        init(
            _ record: RecordID, peer: String, key: String? = nil, gateway: String, prefix: String, token: FencingToken?
        ) {
            self.record = record
            self.peer = peer
            self.key = key
            self.token = token
            let stream = RecordNames.word(record.stream)
            let owner = key.map { "key-" + RecordNames.escaped($0) }
            subject = "\(prefix).\(owner ?? "\(record.sender)").\(stream)"
            lane = OutletMessage.Lane(sender: key.map { "key-" + $0 } ?? "\(record.sender)", stream: record.stream)
            let sender = owner.map { "\($0)-\(record.sender)" } ?? "\(record.sender)"
            idPrefix = "\(sender)/\(record.epoch)/\(RecordNames.escaped(record.stream))/"
            before =
                [
                    NATSMessage.Header("Ferry-Peer", RecordNames.word(peer)),
                    NATSMessage.Header("Ferry-Stream", stream),
                    NATSMessage.Header("Ferry-Epoch", "\(record.epoch)"),
                ] + (key.map { [NATSMessage.Header("Ferry-Key", RecordNames.escaped($0))] } ?? [])
            after =
                [NATSMessage.Header("Ferry-Gateway", RecordNames.escaped(gateway))]
                + (token.map { [NATSMessage.Header("Ferry-Token", "\($0)")] } ?? [])
        }

        /// Whether they are another record's too.
        func fit(_ other: RecordID, peer: String, key: String? = nil, token: FencingToken?) -> Bool {
            record.sender == other.sender && record.epoch == other.epoch && record.stream == other.stream
                && self.peer == peer && self.key == key && self.token == token
        }

        /// `sender/epoch/stream/sequence`: what consumers upsert by.
        func id(_ record: RecordID) -> String { idPrefix + String(record.sequence) }

        func headers(_ record: RecordID) -> [NATSMessage.Header] {
            var headers = before
            headers.reserveCapacity(before.count + 1 + after.count)
            headers.append(NATSMessage.Header("Ferry-Sequence", String(record.sequence)))
            headers += after
            return headers
        }
    }
#endif
