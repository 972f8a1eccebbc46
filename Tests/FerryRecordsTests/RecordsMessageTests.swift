#if Records
    import Ferry
    import FerryTesting
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Documentation/Records.md has the same bytes.
    @Suite(.tags(.records)) struct RecordsMessageTests {
        static let epoch = Epoch(generation: 300, nonce: 0x0102_0304_0506_0708)

        static let golden: [(RecordsMessage, [UInt8])] = [
            (
                .hello(
                    .init(
                        store: StoreID(high: 0x0011_2233_4455_6677, low: 0x8899_AABB_CCDD_EEFF),
                        epoch: Epoch(generation: 1, nonce: 0xF0E0_D0C0_B0A0_9080), largestRecord: 1 << 20)),
                [
                    0x01, 0x01, 0x01, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC,
                    0xDD,
                    0xEE, 0xFF, 0x01, 0xF0, 0xE0, 0xD0, 0xC0, 0xB0, 0xA0, 0x90, 0x80, 0x80, 0x80, 0x40,
                ]
            ),
            (.met(seen: nil, granted: 127), [0x02, 0x00, 0x7F]),
            (
                .met(seen: epoch, granted: 128),
                [0x02, 0xAC, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x80, 0x01]
            ),
            (.open(index: 0, name: "t", acknowledged: nil), [0x03, 0x00, 0x01, 0x74, 0x00]),
            (
                .open(index: 1, name: "", acknowledged: Position(epoch: epoch, sequence: 9)),
                [0x03, 0x01, 0x00, 0xAC, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09]
            ),
            (.position(index: 2, nil), [0x04, 0x02, 0x00]),
            (
                .position(index: 2, Position(epoch: epoch, sequence: 1 << 32)),
                [
                    0x04, 0x02, 0xAC, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x80, 0x80, 0x80, 0x80,
                    0x10,
                ]
            ),
            (
                .records(
                    index: 0, epoch: epoch, previous: 4,
                    [.init(sequence: 5, bytes: [0xAA, 0xBB]), .init(sequence: 8, bytes: [])]),
                [
                    0x05, 0x00, 0xAC, 0x02, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x04, 0x01, 0x02, 0xAA,
                    0xBB,
                    0x03, 0x00,
                ]
            ),
            (.committed(granted: 1000, through: []), [0x06, 0xE8, 0x07]),
            (
                .committed(granted: 1000, through: [.init(index: 0, sequence: 8), .init(index: 3, sequence: 200)]),
                [0x06, 0xE8, 0x07, 0x00, 0x08, 0x03, 0xC8, 0x01]
            ),
            (.end(code: 4, text: "full"), [0x07, 0x04, 0x66, 0x75, 0x6C, 0x6C]),
        ]

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
