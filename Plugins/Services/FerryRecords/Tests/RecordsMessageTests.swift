#if Records
    import Ferry
    import FerryTesting
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Documentation/Records.md has the same bytes.
    @Suite(.tags(.records)) struct RecordsMessageTests {
        private static let vectors = (try? vectorCases("records")) ?? []
        static let golden: [(RecordsMessage, [UInt8])] = vectors.compactMap { vector in
            guard let message = message(vector), let bytes = vector.bytes(of: "bytes") else { return nil }
            return (message, bytes)
        }

        /// The message that a case means; `nil` for an error.
        private static func message(_ vector: VectorCase) -> RecordsMessage? {
            let words = vector.lines[0]
            func number(_ word: String, _ radix: Int = 10) -> UInt64 { UInt64(word, radix: radix) ?? .max }
            /// The epoch at the words from `index` on; `nil` for `none`.
            func epoch(_ index: Int) -> Epoch? {
                guard words[index] != "none" else { return nil }
                return Epoch(generation: number(words[index]), nonce: number(words[index + 1], 16))
            }
            func position(_ index: Int) -> Position? {
                epoch(index).map { Position(epoch: $0, sequence: number(words[index + 2])) }
            }
            func text(_ word: String) -> String { String(decoding: vectorBytes(word), as: UTF8.self) }
            switch words[0] {
            case "hello":
                guard let epoch = epoch(3) else { return nil }
                let store = StoreID(
                    high: number(String(words[2].prefix(16)), 16), low: number(String(words[2].suffix(16)), 16))
                return .hello(.init(store: store, epoch: epoch, largestRecord: Int(number(words[5]))))
            case "met": return .met(seen: epoch(1), granted: number(words[words.count - 1]))
            case "open": return .open(index: Int(number(words[1])), name: text(words[2]), acknowledged: position(3))
            case "position": return .position(index: Int(number(words[1])), position(2))
            case "records":
                guard let epoch = epoch(2) else { return nil }
                let items = vector.lines.filter { $0[0] == "record" }
                    .map { RecordsMessage.Item(sequence: number($0[1]), bytes: vectorBytes($0[2])) }
                return .records(index: Int(number(words[1])), epoch: epoch, previous: number(words[4]), items)
            case "committed":
                let through = vector.lines.filter { $0[0] == "through" }
                    .map { RecordsMessage.Acknowledgement(index: Int(number($0[1])), sequence: number($0[2])) }
                return .committed(granted: number(words[1]), through: through)
            case "end": return .end(code: UInt8(number(words[1])), text: text(words[2]))
            default: return nil
            }
        }

        @Test func eachVectorIsAMessageOrAnError() {
            #expect(Self.golden.count >= 11)
            #expect(Self.vectors.count == Self.golden.count + Self.vectors.count { $0.words(of: "error") != nil })
        }

        @Test(arguments: vectors.filter { $0.words(of: "error") != nil }) func errors(_ vector: VectorCase) throws {
            let bytes = try #require(vector.bytes(of: "bytes"))
            let error = #expect(throws: FerryError.self) { try RecordsMessage(bytes) }
            #expect(error?.code.description == vector.words(of: "error")?.first)
        }

        @Test(arguments: golden.indices) func bytes(_ index: Int) throws {
            let (message, bytes) = Self.golden[index]
            #expect(message.encoded == bytes)
            #expect(try RecordsMessage(bytes) == message)
        }

        @Test(arguments: golden.indices) func cutShort(_ index: Int) throws {
            let (message, bytes) = Self.golden[index]
            for count in 0..<bytes.count {
                guard let shorter = try? RecordsMessage(Array(bytes.prefix(count))) else { continue }
                // What is made of several parts can end after each.
                switch (shorter, message) {
                case (.records, .records), (.committed, .committed), (.end, .end): break
                default: Issue.record("\(count) bytes of \(message) were taken for \(shorter)")
                }
            }
        }

        static let malformed: [(String, [UInt8])] = [
            ("byte 1 of 1: the kind of message is 8", [0x08]),
            ("the kind of message is 0", [0x00]),
            ("it ends where the kind of message should be", []),
            ("longer than it needs to be", [0x04, 0x82, 0x00, 0x00]),
            ("stream 256 is beyond", [0x04, 0x80, 0x02, 0x00]),
            ("1 bytes follow", [0x04, 0x00, 0x00, 0x00]),
            ("a stream's name has 129 bytes", [0x03, 0x00, 0x81, 0x01]),
            ("not UTF-8", [0x03, 0x00, 0x01, 0xFF, 0x00]),
            ("a stream's name has a NUL in it", [0x03, 0x00, 0x02, 0x61, 0x00, 0x00]),
            ("stream 3 is named twice", [0x06, 0x01, 0x03, 0x05, 0x04, 0x05, 0x03, 0x06]),
            ("the sequence of stream 3 is 0", [0x06, 0x01, 0x03, 0x00]),
            ("the position's sequence is 0", [0x04, 0x00, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            ("the epoch has generation 0", [0x05, 0x00, 0x00]),
            ("the sequence of the one before", [0x05, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00]),
            ("a record has 9 bytes, of which 1", [0x05, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x09, 0xAA]),
            // 2^63 is one too many; and so is 2^63 - 1 and one step.
            ("too large", [0x06, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
            (
                "a sequence is too large",
                [0x05, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 1, 0]
            ),
        ]

        @Test(arguments: malformed.indices) func malformedIsRefusedWithItsPlace(_ index: Int) {
            let (what, bytes) = Self.malformed[index]
            let error = #expect(throws: FerryError.self) { try RecordsMessage(bytes) }
            #expect(error?.code == .misbehavingPeer)
            #expect(error?.message.contains(what) == true, "\(error?.message ?? "")")
        }

        @Test func aPeersWordsDoNotMoveTheCursor() throws {
            let bytes: [UInt8] = [0x07, 0x00] + Array("\u{1B}[2Jgone\r\u{85}\n".utf8) + [0xFF]
            let expected = RecordsMessage.end(code: 0, text: "\u{FFFD}[2Jgone\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}")
            #expect(try RecordsMessage(bytes) == expected)
        }

        @Test func anyBytesAreAMessageOrAnError() throws {
            var random = SplitMix64(seed: 21)
            for _ in 0..<20_000 {
                var bytes = Self.golden.randomElement(using: &random)?.1 ?? []
                for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                    bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                guard let message = try? RecordsMessage(bytes) else { continue }
                // HELLO may have more behind it, and END's text be repaired.
                switch message {
                case .hello, .end: break
                default: #expect(message.encoded == bytes)
                }
            }
        }
    }
#endif
