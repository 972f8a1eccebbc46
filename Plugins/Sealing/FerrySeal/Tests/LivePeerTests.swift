#if Seal
    import Ferry
    import FerrySeal
    import FerrySocket
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// A peer in Python that is there: each handshake, and a thousand messages each way. `scripts/interop seal` runs it.
    @Suite(
        .tags(.framing, .slow), .timeLimit(.minutes(5)),
        .enabled(if: ProcessInfo.processInfo.environment["FERRY_INTEROP"] != nil, "scripts/interop seal runs it")
    ) struct LivePeerTests {
        private static func payload(_ number: Int, _ side: Int) -> [UInt8] {
            (0..<number * 13 % 300).map { UInt8(truncatingIfNeeded: number * 7 + $0 + side) }
        }

        /// The 16 bytes of the code: what the peer is given as hexadecimal digits.
        private struct Bytes: RandomNumberGenerator {
            var bytes: ArraySlice<UInt8>
            mutating func next() -> UInt64 { UInt64(bytes.popFirst() ?? 0) }
        }

        @Test(arguments: ["xx", "ik", "kk", "invited"], [20, 244]) func aThousandMessagesCrossEachWay(
            _ meeting: String, _ chunkSize: Int
        ) async throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
                "s-\(UUID().uuidString.prefix(8))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let path = folder.appendingPathComponent("s").path
            var generator = SplitMix64(seed: UInt64(chunkSize))
            let (secret, code) = (generator.bytes(32), generator.bytes(16))
            let theirs = try SecretKey(bytes: secret)
            let own = SecretKey()
            var codes = Bytes(bytes: code[...])
            let acceptance: NoiseSealing.Acceptance =
                switch meeting {
                case "kk": .pair(theirs.publicKey)
                case "invited": .invitation(Invitation(using: &codes))
                default: .keys { $0 == theirs.publicKey }
                }
            let listener = try await SocketTransport(SocketAddress("unix:\(path)")).listen()
            defer { listener.close() }
            let output = Pipe()
            let process = try ChildProcess(
                ".build-interop/venv/bin/python",
                [
                    "Tests/Interop/seal_peer.py", path, "\(chunkSize)", meeting, digits(secret),
                    digits(own.publicKey.bytes), digits(code),
                ], output: .pipe(output))
            defer { process.signal(SIGTERM) }
            var links = listener.links.makeAsyncIterator()
            let link = try #require(await links.next())
            let channel = try MessageChannel(
                over: link, codec: BytesCodec(),
                framing: SealedFraming(
                    LengthPrefixFraming(), by: NoiseSealing(acceptingAs: own, from: acceptance)), chunkSize: chunkSize)
            async let sending: Void = {
                for number in 0..<1000 { try await channel.send(Self.payload(number, 1)) }
            }()
            var messages = channel.messages.makeAsyncIterator()
            for number in 0..<1000 {
                let message = try await messages.next()
                try #require(message == Self.payload(number, 0), "message \(number)")
            }
            try await sending
            #expect(channel.peer == PeerIdentity("\(theirs.publicKey.fingerprint)", certainty: .key))
            channel.close()
            // It says so when it has checked the last one.
            let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            #expect(said == "1000 sent, 1000 received\n")
            #expect(await process.ended() == .exited(0))
        }
    }
#endif
