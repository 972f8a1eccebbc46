#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// Keys, their texts and their files.
    @Suite(.tags(.hostility)) struct KeyTests {
        private static let folder = FileManager.default.temporaryDirectory

        private static func withFile<Value>(_ body: (String) throws -> Value) throws -> Value {
            let path = folder.appending(path: "ferry-key-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: path) }
            return try body(path)
        }

        /// Held down: these texts stand in files and on paper.
        @Test func textsAreAsTheyWere() throws {
            let key = try SecretKey(bytes: [UInt8](0..<32))
            #expect("\(key.publicKey)" == "ferry1hx0cbbdphwjp4jq5p8aemxktdv4mv0mx7nxnw6phq9qkw89r51fhbm")
            #expect(key.secretText == "FERRY-SECRET-1000G40R40M30E209185GR38E1W8124GK2GAHC5RR34D1P70X3RFSKV")
            #expect("\(key.publicKey.fingerprint)" == "wnhcmk2778an1jdpc99zt7mv2d886nf7")
            #expect(key.publicKey.fingerprint.grouped == "wnhc-mk27-78an-1jdp-c99z-t7mv-2d88-6nf7")
            var generator = SplitMix64(seed: 1)
            let invitation = Invitation(using: &generator)
            #expect(invitation.code == "r5knw-2xsg2-jqba4-pc7zc-12n87-exdmc")
        }

        @Test func textsAreReadBack() throws {
            for seed in 0..<50 as Range<UInt64> {
                let key = testKey(seed)
                #expect(try SecretKey(secretText: key.secretText) == key)
                #expect(try SecretKey(secretText: key.secretText.lowercased()) == key)
                #expect(try PublicKey(text: "\(key.publicKey)") == key.publicKey)
                #expect(try PublicKey(text: "\(key.publicKey)".uppercased()) == key.publicKey)
                #expect(Fingerprint(key.publicKey.fingerprint.grouped.uppercased()) == key.publicKey.fingerprint)
                #expect(Fingerprint("\(key.publicKey.fingerprint)") == key.publicKey.fingerprint)
                let invitation = Invitation()
                let typed = invitation.code.uppercased().replacing("-", with: " ").replacing("0", with: "O").replacing(
                    "1", with: "l")
                #expect(try Invitation(code: typed).code == invitation.code)
            }
        }

        @Test func eachMistypedCharacterIsFound() throws {
            var generator = SplitMix64(seed: 5)
            let code = Array(Invitation(using: &generator).code)
            let key = Array("\(testKey(1).publicKey)")
            for index in code.indices where code[index] != "-" {
                var other = code
                other[index] = other[index] == "z" ? "y" : "z"
                #expect(failure { try Invitation(code: String(other)) }?.code == .sealMalformedKey)
            }
            var undetected = 0
            for index in key.indices.dropFirst(6) {
                for digit in "0123456789abcdefghjkmnpqrstvwxyz" where digit != key[index] {
                    var other = key
                    other[index] = digit
                    if failure({ try PublicKey(text: String(other)) }) == nil { undetected += 1 }
                }
            }
            // 14 bits of checksum: one in 16 384 of 1674 changes would slip through.
            #expect(undetected <= 1)
            for text in [
                "", "ferry1", "ferry1é", "ferry2" + String(key.dropFirst(6)), String(key.dropLast()), String(key) + "0",
                "u",
            ] {
                #expect(failure { try PublicKey(text: text) }?.code == .sealMalformedKey)
            }
            #expect(Fingerprint("abc") == nil && Fingerprint(String(repeating: "u", count: 32)) == nil)
        }

        @Test func nothingShowsASecret() throws {
            let key = testKey(9)
            let secret = key.secretText.lowercased()
            var generator = SplitMix64(seed: 5)
            let invitation = Invitation(using: &generator)
            let raw = SplitMix64(seed: 9)
            var copy = raw
            let bytes = copy.bytes(32)
            var shown =
                "\(key) \(String(reflecting: key)) \([key]) \(invitation) \([invitation]) \(invitation.presharedKey)"
            dump(key, to: &shown)
            dump(invitation, to: &shown)
            dump(invitation.presharedKey, to: &shown)
            let sealing = NoiseSealing(connectingAs: key, to: .invitation(invitation))
            dump(sealing, to: &shown)
            var seal = sealing.makeSeal(for: SealedExchange(payloads: PayloadFormat(), keepsOrder: true))
            _ = try seal.nextHandshakeMessage()
            dump(seal, to: &shown)
            shown += "\(failure { try seal.open([1]) }?.description ?? "") "
            shown += "\(failure { try SecretKey(secretText: secret.dropLast()) }?.description ?? "") "
            shown += "\(failure { try KeyText.parse("\(secret)x") }?.description ?? "") "
            shown += "\(failure { try Invitation(code: invitation.code.dropLast()) }?.description ?? "") "
            let lower = shown.lowercased()
            #expect(!lower.contains(secret.dropFirst(14).prefix(8)))
            #expect(!lower.contains(invitation.code.prefix(11)))
            #expect(!lower.contains(digits(bytes).prefix(8)))
            #expect(!lower.contains(bytes.prefix(4).map(String.init).joined(separator: ", ")))
            #expect(lower.contains("\(key.publicKey.fingerprint)"))
        }

        @Test func aKeyFileIsForItsOwnerAlone() throws {
            try Self.withFile { path in
                let key = testKey(3)
                try KeyFile.writeSecretKey(key, at: path)
                let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
                #expect(mode == 0o600)
                #expect(try KeyFile.readSecretKey(at: path) == key)
                #expect(failure { try KeyFile.writeSecretKey(testKey(4), at: path) }?.code == .sealUnsafeFile)
                #expect(try KeyFile.readSecretKey(at: path) == key)
                for mode in [0o640, 0o604, 0o620, 0o601, 0o666, 0o700 | 0o010] {
                    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
                    let error = try #require(failure { try KeyFile.readSecretKey(at: path) })
                    #expect(error.code == .sealUnsafeFile && error.message.contains(String(mode, radix: 8)), "\(error)")
                }
                try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: path)
                #expect(try KeyFile.readSecretKey(at: path) == key)
            }
        }

        @Test func whatIsNoKeyFileIsRefused() throws {
            try Self.withFile { path in
                #expect(failure { try KeyFile.readSecretKey(at: path) }?.code == .sealUnsafeFile)
                #expect(failure { try KeyFile.readSecretKey(at: Self.folder.path) }?.code == .sealUnsafeFile)
                try KeyFile.writeSecretKey(testKey(1), at: path)
                let link = path + "-link"
                defer { try? FileManager.default.removeItem(atPath: link) }
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
                #expect(failure { try KeyFile.readSecretKey(at: link) }?.code == .sealUnsafeFile)
                #expect(failure { try KeyFile.writeSecretKey(testKey(1), at: link) }?.code == .sealUnsafeFile)
                for content in [Data(), Data("# nothing\n".utf8), Data([0xFF]), Data("\(testKey(1).publicKey)".utf8)] {
                    try content.write(to: URL(filePath: path))
                    #expect(failure { try KeyFile.readSecretKey(at: path) } != nil)
                }
                try Data(repeating: 0x23, count: KeyText.maximumSize + 1).write(to: URL(filePath: path))
                #expect(failure { try KeyFile.readSecretKey(at: path) }?.message.contains("more than") == true)
                let two = KeyText.write(testKey(1)) + KeyText.write(testKey(2))
                #expect(failure { try KeyText.parse(two) }?.message.contains("Line 6") == true)
            }
        }

        @Test func anAllowListIsReadAndWritten() throws {
            let keys = (0..<3 as Range<UInt64>).map { testKey($0).publicKey }
            let text = "# friends\r\n\n  \(keys[0])   Anna's phone \n\(keys[1])\t東京\r\n\(keys[2])"
            var list = try AllowList(parsing: text)
            #expect(list.entries.map(\.name) == ["Anna's phone", "東京", ""])
            #expect(
                list.entry(for: keys[1])?.name == "東京" && list.allows(keys[2]) && !list.allows(testKey(7).publicKey))
            #expect(try AllowList(parsing: list.text) == list)
            #expect(try !list.add(keys[0], name: "again"))
            #expect(list.remove(keys[0]) && !list.remove(keys[0]))
            #expect(list.entry(for: keys[2]) != nil && !list.allows(keys[0]) && list.entries.count == 2)
            for name in ["a\nb", " a", "a\u{0}", "a\u{2028}b", String(repeating: "x", count: 129)] {
                #expect(failure { try list.add(keys[0], name: name) }?.code == .sealMalformedKey)
            }
            let error = try #require(failure { try AllowList(parsing: "\(keys[0]) a\n\n\(keys[0]) b") })
            #expect(error.message.contains("Line 3"))
            #expect(failure { try AllowList(parsing: "\(keys[0]) a\nnonsense") }?.message.contains("Line 2") == true)
        }

        @Test func anAllowListMustNotBeWritableByOthers() throws {
            try Self.withFile { path in
                #expect(try KeyFile.readAllowList(at: path).entries.isEmpty)
                try Data("\(testKey(1).publicKey) a\n".utf8).write(to: URL(filePath: path))
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
                #expect(try KeyFile.readAllowList(at: path).allows(testKey(1).publicKey))
                try FileManager.default.setAttributes([.posixPermissions: 0o664], ofItemAtPath: path)
                #expect(failure { try KeyFile.readAllowList(at: path) }?.code == .sealUnsafeFile)
            }
        }

        @Test func parsingHostileTextNeverTraps() {
            var generator = SplitMix64(seed: 11)
            let start = "ferry1\(String(repeating: "0", count: 54)) name\n"
            for _ in 0..<2000 {
                var bytes = Array(start.utf8)
                for _ in 0..<4 {
                    bytes[Int(generator.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: generator.next())
                }
                let text = String(decoding: bytes, as: UTF8.self)
                _ = failure { try AllowList(parsing: text) }
                _ = failure { try KeyText.parse(text) }
                _ = failure { try Invitation(code: text) }
                _ = Fingerprint(text)
            }
        }
    }
#endif
