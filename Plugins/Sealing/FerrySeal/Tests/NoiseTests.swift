#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import TestSupport
    import Testing

    /// Noise, revision 34, against others' vectors, and against peers that do not keep to it.
    @Suite(.tags(.hostility)) struct NoiseTests {
        static func pattern(_ name: String) -> NoisePattern? {
            let bases: [String: NoisePattern] = ["NN": .nn, "NX": .nx, "XX": .xx, "IK": .ik, "KK": .kk]
            guard let base = bases[String(name.prefix(2))] else { return nil }
            return name.count == 2 ? base : Int(name.suffix(1)).flatMap { base.withPresharedKey($0) }
        }

        /// Both sides of a pattern, with keys made from a seed.
        static func pair(
            _ pattern: NoisePattern, seed: UInt64 = 1, prologues: ([UInt8], [UInt8]) = ([], [])
        ) throws -> (HandshakeState, HandshakeState) {
            let (a, b) = (testKey(seed), testKey(seed + 1))
            let psk = pattern.hasPresharedKey ? try PresharedKey(bytes: [UInt8](repeating: 7, count: 32)) : nil
            return (
                try HandshakeState(
                    pattern, .initiator, prologue: prologues.0,
                    keys: HandshakeState.Keys(own: a, peer: b.publicKey, preshared: psk), ephemeral: testKey(seed + 2)),
                try HandshakeState(
                    pattern, .responder, prologue: prologues.1,
                    keys: HandshakeState.Keys(own: b, peer: a.publicKey, preshared: psk), ephemeral: testKey(seed + 3))
            )
        }

        static let patterns: [NoisePattern] = {
            let bases: [NoisePattern] = [.nn, .nx, .xx, .ik, .kk]
            return bases + bases.flatMap { base in (0...3).compactMap { base.withPresharedKey($0) } }
        }()

        @Test func allVectorsAreReadAndCovered() throws {
            #expect(
                Set(try Vectors.noise().map(\.pattern)).isSuperset(of: ["XX", "IK", "KK", "XXpsk0", "XXpsk3", "IKpsk2"])
            )
            #expect(try Vectors.noise().count == 15)
        }

        @Test(arguments: try Vectors.noise()) func vectorsMatchByteForByte(_ vector: Vectors.Noise) throws {
            let pattern = try #require(Self.pattern(vector.pattern))
            #expect(pattern.protocolName == vector.name)
            let psk = try vector.psk.map { try PresharedKey(bytes: bytes($0)) }
            let own = (vector.init_static, vector.resp_static)
            let a = try own.0.map { try SecretKey(bytes: bytes($0)) }
            let b = try own.1.map { try SecretKey(bytes: bytes($0)) }
            var initiator = try HandshakeState(
                pattern, .initiator, prologue: bytes(vector.init_prologue),
                keys: HandshakeState.Keys(own: a, peer: b?.publicKey, preshared: psk),
                ephemeral: SecretKey(bytes: bytes(vector.init_ephemeral)))
            var responder = try HandshakeState(
                pattern, .responder, prologue: bytes(vector.resp_prologue),
                keys: HandshakeState.Keys(own: b, peer: a?.publicKey, preshared: psk),
                ephemeral: SecretKey(bytes: bytes(vector.resp_ephemeral)))
            var ciphers: (a: HandshakeState.Result, b: HandshakeState.Result)?
            var states: [CipherState] = []
            for (index, message) in vector.messages.enumerated() {
                let isFromInitiator = index.isMultiple(of: 2)
                if !initiator.isComplete {
                    #expect(initiator.writesNext == isFromInitiator && responder.writesNext != isFromInitiator)
                    let written =
                        isFromInitiator
                        ? try initiator.write(bytes(message.payload)) : try responder.write(bytes(message.payload))
                    #expect(digits(written) == message.ciphertext, "message \(index)")
                    #expect(written.count == pattern.messageCount(index) + message.payload.count / 2)
                    let read =
                        isFromInitiator
                        ? try responder.read(bytes(message.ciphertext)) : try initiator.read(bytes(message.ciphertext))
                    #expect(digits(read) == message.payload, "message \(index)")
                    if initiator.isComplete {
                        ciphers = (try #require(initiator.result), try #require(responder.result))
                        #expect(ciphers?.a.hash == ciphers?.b.hash)
                        states = try [
                            #require(ciphers?.a.sending), #require(ciphers?.b.receiving), #require(ciphers?.b.sending),
                            #require(ciphers?.a.receiving),
                        ]
                    }
                    continue
                }
                let at = isFromInitiator ? 0 : 2
                #expect(
                    digits(try states[at].encrypt(bytes(message.payload))) == message.ciphertext, "message \(index)")
                #expect(digits(try states[at + 1].decrypt(bytes(message.ciphertext)[...])) == message.payload)
            }
            #expect(ciphers != nil)
        }

        @Test(arguments: patterns) func everyAlteredByteIsRefusedByItsReaderOrTheNextOne(_ pattern: NoisePattern) throws
        {
            var generator = SplitMix64(seed: 3)
            for step in 0..<pattern.messageTotal {
                for _ in 0..<12 {
                    let (a, b) = try Self.pair(pattern)
                    var sides = [a, b]
                    var refusal: FerryError?
                    for index in 0..<pattern.messageTotal where refusal == nil {
                        var message = try sides[index % 2].write()
                        if index == step {
                            message[Int(generator.next() % UInt64(message.count))] ^= UInt8(1 << (generator.next() % 8))
                        }
                        refusal = failure { try sides[1 - index % 2].read(message) }
                    }
                    // The top bit of an X25519 key counts for nothing in the agreement (RFC 7748, 5), but the hash has it. In NN and NX the
                    // last message ends in a tag too.
                    if refusal == nil {
                        let keys = try (#require(sides[0].result), #require(sides[1].result))
                        #expect(keys.0.hash != keys.1.hash)
                        var (sending, receiving) = (keys.0.sending, keys.1.receiving)
                        let sealed = try sending.encrypt([1])
                        refusal = failure { try receiving.decrypt(sealed[...]) }
                    }
                    #expect([.sealRefused, .sealWeakKey].contains(refusal?.code), "\(pattern.name) message \(step)")
                }
            }
        }

        @Test(arguments: patterns) func cutMessagesAreTruncatedAndEndTheHandshake(_ pattern: NoisePattern) throws {
            for step in 0..<pattern.messageTotal {
                var (a, b) = try Self.pair(pattern)
                for index in 0..<step {
                    if index.isMultiple(of: 2) { _ = try b.read(a.write()) } else { _ = try a.read(b.write()) }
                }
                let message = step.isMultiple(of: 2) ? try a.write() : try b.write()
                for count in [0, 1, 31, message.count - 1] {
                    var reader = step.isMultiple(of: 2) ? b : a
                    #expect(failure { try reader.read(Array(message.prefix(count))) }?.code == .sealTruncated)
                    #expect(failure { try reader.read(message) }?.code == .sealOutOfTurn)
                    #expect(!reader.isComplete && reader.result == nil)
                }
            }
        }

        @Test func stepsOutOfTurnAreNamed() throws {
            var (a, b) = try Self.pair(.xx)
            #expect(failure { try b.write() }?.code == .sealOutOfTurn)
            #expect(failure { try a.read([UInt8](repeating: 0, count: 96)) }?.code == .sealOutOfTurn)
            let first = try a.write()
            #expect(failure { try a.write() }?.code == .sealOutOfTurn)
            _ = try b.read(first)
            #expect(failure { try b.read(first) }?.code == .sealOutOfTurn)
        }

        @Test func differentProloguesEndTheHandshake() throws {
            var (a, b) = try Self.pair(.ik, prologues: ([1], [2]))
            #expect(failure { try b.read(a.write()) }?.code == .sealRefused)
        }

        /// The points of small order (RFC 7748, 6.1; the list of curve25519.dev), each as the ephemeral key of a peer.
        @Test(arguments: [
            String(repeating: "00", count: 32), "01" + String(repeating: "00", count: 31),
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ]) func keysOfSmallOrderAreWeak(_ point: String) throws {
            var (_, b) = try Self.pair(.xx)
            _ = try b.read(bytes(point))
            #expect(failure { try b.write() }?.code == .sealWeakKey)
        }

        @Test func missingKeysAreNamedBeforeAnythingIsSent() throws {
            let own = testKey(1)
            #expect(
                failure {
                    try HandshakeState(.ik, .initiator, prologue: [], keys: .init(own: own), ephemeral: testKey(2))
                }?.code
                    == .invalidConfiguration)
            #expect(
                failure { try HandshakeState(.xx, .responder, prologue: [], keys: .init(), ephemeral: testKey(2)) }?
                    .code
                    == .invalidConfiguration)
            let withPSK = try #require(NoisePattern.xx.withPresharedKey(0))
            #expect(
                failure {
                    try HandshakeState(withPSK, .initiator, prologue: [], keys: .init(own: own), ephemeral: testKey(2))
                }?.code
                    == .invalidConfiguration)
            #expect(NoisePattern.xx.withPresharedKey(4) == nil && withPSK.withPresharedKey(1) == nil)
        }
    }
#endif
