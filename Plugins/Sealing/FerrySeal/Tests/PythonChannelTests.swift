#if Seal
    import Crypto
    import Ferry
    import FerrySeal
    import FerryTesting
    import TestSupport
    import Testing

    /// Sealed channels over length prefix, byte for byte as a peer in Python writes them (Vectors/generate.py).
    @Suite(.tags(.framing, .hostility)) struct PythonChannelTests {
        struct Vector: Decodable, CustomTestStringConvertible {
            let meeting, a, b, code, ephemeralA, ephemeralB, digestA, digestB: String
            let countA, countB: Int
            var testDescription: String { meeting }
        }

        private static func vectors() throws -> [Vector] {
            struct File: Decodable { let vectors: [Vector] }
            return try Vectors.load("channels.json", as: File.self).vectors
        }

        private static func payload(_ number: Int, _ side: Int) -> [UInt8] {
            (0..<number * 13 % 300).map { UInt8(truncatingIfNeeded: number * 7 + $0 + side) }
        }

        /// The 16 bytes of a code, one after the other.
        private struct Bytes: RandomNumberGenerator {
            var bytes: ArraySlice<UInt8>
            // The generator of UInt8 takes the low byte of each word.
            mutating func next() -> UInt64 { UInt64(bytes.popFirst() ?? 0) }
        }

        /// What one side's link takes, and what the other's app gets.
        private struct Side {
            var session: any FramingSession
            var stream: [UInt8] = []
            var received: [[UInt8]] = []

            mutating func transmit(_ size: Int, to other: inout Side) throws -> Bool {
                var chunk: [UInt8] = []
                let outcome = try session.transmit(atMost: size, at: .zero) { span in
                    chunk = span.withUnsafeBytes { Array($0) }
                    return true
                }
                while session.nextEvent() != nil {}
                guard outcome == .accepted else { return false }
                stream += chunk
                try other.session.receive(chunk.span.bytes, at: .zero)
                while let event = other.session.nextEvent() {
                    if case .received(let payload) = event { other.received.append(payload) }
                }
                return true
            }
        }

        @Test(arguments: try vectors(), [20, 244]) func channelsAreThePythonPeersByteForByte(
            _ vector: Vector, _ chunkSize: Int
        ) throws {
            let (a, b) = try (SecretKey(bytes: bytes(vector.a)), SecretKey(bytes: bytes(vector.b)))
            let ephemeral = try (SecretKey(bytes: bytes(vector.ephemeralA)), SecretKey(bytes: bytes(vector.ephemeralB)))
            var generator = Bytes(bytes: bytes(vector.code)[...])
            let invitation = Invitation(using: &generator)
            let (peer, acceptance): (NoiseSealing.Peer, NoiseSealing.Acceptance) =
                switch vector.meeting {
                case "ik": (.key(b.publicKey), .anyone)
                case "kk": (.pair(b.publicKey), .pair(a.publicKey))
                case "invited": (.invitation(invitation), .invitation(invitation))
                default: (.anyone, .anyone)
                }
            func session(_ sealing: NoiseSealing) -> any FramingSession {
                SealedFraming(LengthPrefixFraming(), by: sealing).makeSession(limits: Limits())
            }
            var near = Side(session: session(NoiseSealing(connectingAs: a, to: peer) { ephemeral.0 }))
            var far = Side(session: session(NoiseSealing(acceptingAs: b, from: acceptance) { ephemeral.1 }))
            for number in 0..<1000 {
                try near.session.enqueue(Self.payload(number, 0), as: MessageID(rawValue: UInt64(number)), at: .zero)
                try far.session.enqueue(Self.payload(number, 1), as: MessageID(rawValue: UInt64(number)), at: .zero)
            }
            var isBusy = true
            while isBusy {
                isBusy = try near.transmit(chunkSize, to: &far)
                if try far.transmit(chunkSize, to: &near) { isBusy = true }
            }
            #expect(near.stream.count == vector.countA && far.stream.count == vector.countB)
            #expect(digits(SHA256.hash(data: near.stream)) == vector.digestA)
            #expect(digits(SHA256.hash(data: far.stream)) == vector.digestB)
            #expect(far.received == (0..<1000).map { Self.payload($0, 0) })
            #expect(near.received == (0..<1000).map { Self.payload($0, 1) })
        }
    }
#endif
