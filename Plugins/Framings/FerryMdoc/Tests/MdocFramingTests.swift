import Ferry
import FerryMdoc
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing)) struct MdocFramingTests {
    private static let at = Timestamp.zero

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 18_013)
        let messages = [1, 18, 19, 20, 38, 39, 512, 2000].map { random.bytes($0) }
        try FramingVerifier(MdocFraming(), boundaries: .carryMeaning, minimumChunkSize: 2)
            .verify(messages, chunkSizes: [2, 3, 20, 182, 244, 512, 600])
    }

    /// Sizes of messages and their values of at most 20 bytes, as EUDI's splitter cuts them (eudi-lib-ios-iso18013-data-transfer
    /// 0.8.5): bytes that count from 0.
    @Test(arguments: [
        (1, ["0000"]), (18, ["00000102030405060708090a0b0c0d0e0f1011"]),
        (19, ["00000102030405060708090a0b0c0d0e0f101112"]),
        (20, ["01000102030405060708090a0b0c0d0e0f101112", "0013"]),
        (38, ["01000102030405060708090a0b0c0d0e0f101112", "00131415161718191a1b1c1d1e1f202122232425"]),
        (
            39,
            [
                "01000102030405060708090a0b0c0d0e0f101112", "01131415161718191a1b1c1d1e1f202122232425", "0026",
            ]
        ),
        (
            45,
            [
                "01000102030405060708090a0b0c0d0e0f101112", "01131415161718191a1b1c1d1e1f202122232425",
                "00262728292a2b2c",
            ]
        ),
    ])
    func goldenRow(_ count: Int, _ values: [String]) throws {
        let message = (0..<count).map { UInt8($0) }
        #expect(try cut(message, atMost: 20).map(digits) == values)
        let chunks = values.map(bytes)
        try FramingVerifier(MdocFraming(), boundaries: .carryMeaning, minimumChunkSize: 2)
            .verifyReceiving(chunks, as: [message])
    }

    /// However much the link takes, a value has 512 bytes (Android cut those of 514).
    @Test func valuesHaveAtMost512Bytes() throws {
        let sizes = try cut([UInt8](repeating: 7, count: 1100), atMost: 514).map(\.count)
        #expect(sizes == [512, 512, 79])
    }

    /// EUDI 0.8.5 sends values of ATT_MTU - 6, and nobody says that all are alike.
    @Test func shorterValuesAreTaken() throws {
        var session = MdocFraming().makeSession(limits: Limits())
        for chunk in [[1, 1], [1, 2, 3, 4], [1, 5], [0]] as [[UInt8]] {
            try session.receive(chunk.span.bytes, at: Self.at)
        }
        #expect(received(&session) == [[1, 2, 3, 4, 5]])
        try session.receive(([0] as [UInt8]).span.bytes, at: Self.at)
        #expect(received(&session) == [[]])
    }

    @Test func anEmptyMessageIsRefused() {
        var session = MdocFraming().makeSession(limits: Limits())
        let error = #expect(throws: FerryError.self) {
            try session.enqueue([], as: MessageID(rawValue: 0), at: Self.at)
        }
        #expect(error?.code == .emptyMdocMessage)
        #expect((try? cutNext(&session, 20)) == .some(nil))
    }

    /// Each by itself, and after the beginning of a message: an error that names what was met, and the same for whatever follows.
    @Test(
        arguments: [([], "empty chunk"), ([2, 1], "begins with 2"), ([0xFF], "begins with 255"), ([1], "a 1 alone")]
            as [([UInt8], String)])
    func hostileChunksAreNamed(_ chunk: [UInt8], _ what: String) throws {
        for before in [[], [[1, 9, 9]]] as [[[UInt8]]] {
            var session = MdocFraming().makeSession(limits: Limits())
            for chunk in before { try session.receive(chunk.span.bytes, at: Self.at) }
            for next in [chunk, [0, 1]] {
                let error = #expect(throws: FerryError.self) { try session.receive(next.span.bytes, at: Self.at) }
                #expect(error?.code == .malformedStream)
                #expect(
                    error?.message.contains(what) == true
                        || what == "empty chunk" && error?.message.contains("empty") == true)
            }
            #expect(received(&session).isEmpty)
        }
    }

    @Test func aMessageAboveTheLimitIsRefusedBeforeItIsWhole() throws {
        var limits = Limits()
        limits.maximumMessageSize = 10
        var session = MdocFraming().makeSession(limits: limits)
        let chunk = [1] + [UInt8](repeating: 7, count: 10)
        try session.receive(chunk.span.bytes, at: Self.at)
        let error = #expect(throws: FerryError.self) {
            try session.receive(([1, 1] as [UInt8]).span.bytes, at: Self.at)
        }
        #expect(error?.code == .messageTooLarge)
    }

    /// The standard's Annex D key; the value was computed by pyca/cryptography, and the digests are those of FIPS 180-4's examples.
    @Test func identIsTheStandardsDerivation() {
        let key = bytes(
            "d818584ba4010220012158205a88d182bce5f42efa59943f33359d2e8a968ff289d93e5fa444b624343167fe225820b16e8cf858ddc7690407ba61d4"
                + "c338237a8cfcf3de6aa672fc60a557aa32fc67")
        #expect(digits(MdocIdent.value(eDeviceKeyBytes: key)) == "8da0b7a85919f05673054ea996bbd124")
    }

    // MARK: Helpers

    private func cut(_ message: [UInt8], atMost size: Int) throws -> [[UInt8]] {
        var session = MdocFraming().makeSession(limits: Limits())
        try session.enqueue(message, as: MessageID(rawValue: 0), at: Self.at)
        var chunks: [[UInt8]] = []
        while let chunk = try cutNext(&session, size) { chunks.append(chunk) }
        return chunks
    }

    private func cutNext(_ session: inout MdocFraming.Session, _ size: Int) throws -> [UInt8]? {
        var chunk: [UInt8]?
        _ = try session.transmit(atMost: size, at: Self.at) { (offered) throws(FerryError) in
            chunk = offered.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        return chunk
    }

    private func received(_ session: inout MdocFraming.Session) -> [[UInt8]] {
        var messages: [[UInt8]] = []
        while let event = session.nextEvent() { if case .received(let message) = event { messages.append(message) } }
        return messages
    }
}
