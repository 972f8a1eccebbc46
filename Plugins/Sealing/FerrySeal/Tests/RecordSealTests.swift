#if Seal
    import Crypto
    import Ferry
    import FerrySeal
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// Records sealed for their consumer.
    @Suite(.tags(.records, .hostility)) struct RecordSealTests {
        private let sender = testKey(1)
        private let consumer = testKey(2)
        private let scope = RecordScope(stream: "temperature", epoch: [1, 2, 3])

        private func opener(_ scope: RecordScope? = nil) -> RecordOpener {
            RecordOpener(as: consumer, from: sender.publicKey, scope: scope ?? self.scope)
        }

        /// RFC 9180, A.2.3, through the library that is used: what it receives, and what it exports.
        @Test func libraryMatchesTheRFC() throws {
            struct File: Decodable { let vector: Vectors.HPKE }
            let vector = try Vectors.load("hpke.json", as: File.self).vector
            var recipient = try HPKE.Recipient(
                privateKey: Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes(vector.skRm)),
                ciphersuite: .Curve25519_SHA256_ChachaPoly, info: Data(bytes(vector.info)),
                encapsulatedKey: Data(bytes(vector.enc)),
                authenticatedBy: Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes(vector.pkSm)))
            for export in vector.exports {
                let secret = try recipient.exportSecret(context: bytes(export.exporter_context), outputByteCount: 32)
                #expect(secret.withUnsafeBytes { digits($0) } == export.exported_value)
            }
            for encryption in vector.encryptions {
                let plain = try recipient.open(bytes(encryption.ct), authenticating: bytes(encryption.aad))
                #expect(digits(plain) == encryption.pt)
            }
        }

        @Test func recordsSealedByPythonOpen() throws {
            let file = try Vectors.load("records.json", as: Vectors.Records.self)
            var opener = RecordOpener(
                as: try SecretKey(bytes: bytes(file.consumer)),
                from: try SecretKey(bytes: bytes(file.sender)).publicKey,
                scope: RecordScope(stream: file.stream, epoch: bytes(file.epoch)))
            for record in file.records {
                #expect(digits(try opener.open(bytes(record.sealed), sequence: record.sequence)) == record.record)
            }
            #expect(file.records.count == 6)
        }

        @Test func recordsOpenInAnyOrderOnceTheKeyIsThere() throws {
            var sealer = try RecordSealer(for: consumer.publicKey, as: sender, scope: scope, keyEvery: 10)
            var sealed: [[UInt8]] = []
            for sequence in 0..<40 { sealed.append(try sealer.seal(pattern(sequence), sequence: UInt64(sequence * 3))) }
            for (index, record) in sealed.enumerated() {
                let added = index % 10 == 0 ? RecordSealer.maximumOverhead : RecordSealer.usualOverhead
                #expect(record.count == index + added)
            }
            var opener = opener()
            #expect(failure { try opener.open(sealed[5], sequence: 15) }?.code == .sealMissingKey)
            for index in [10, 39, 5, 0, 20, 5] {
                #expect(try opener.open(sealed[index], sequence: UInt64(index * 3)) == pattern(index))
            }
        }

        @Test func alteredCutAndMisplacedRecordsAreRefused() throws {
            var sealer = try RecordSealer(for: consumer.publicKey, as: sender, scope: scope)
            let first = try sealer.seal([1, 2, 3], sequence: 1)
            let second = try sealer.seal([4, 5], sequence: 2)
            var opener = opener()
            _ = try opener.open(first, sequence: 1)
            for (record, sequence) in [(first, 1), (second, 2)] as [([UInt8], UInt64)] {
                for index in record.indices {
                    var altered = record
                    altered[index] ^= 1
                    #expect(failure { try opener.open(altered, sequence: sequence) } != nil)
                }
                for count in record.indices {
                    #expect(failure { try opener.open(Array(record.prefix(count)), sequence: sequence) } != nil)
                }
                #expect(failure { try opener.open(record, sequence: sequence + 1) }?.code == .sealRefused)
            }
            for other in [
                RecordScope(stream: "temperatur", epoch: [101, 1, 2, 3]),
                RecordScope(stream: "temperature", epoch: [1, 2, 4]),
                RecordScope(stream: "temperature\u{1}", epoch: [2, 3]),
            ] {
                var elsewhere = self.opener(other)
                #expect(failure { try elsewhere.open(first, sequence: 1) }?.code == .sealRefused)
            }
            var stranger = RecordOpener(as: consumer, from: testKey(5).publicKey, scope: scope)
            #expect(failure { try stranger.open(first, sequence: 1) }?.code == .sealRefused)
            var wrongConsumer = RecordOpener(as: testKey(5), from: sender.publicKey, scope: scope)
            #expect(failure { try wrongConsumer.open(first, sequence: 1) }?.code == .sealRefused)
        }

        @Test func aNumberIsSealedOnceOnly() throws {
            var sealer = try RecordSealer(for: consumer.publicKey, as: sender, scope: scope)
            _ = try sealer.seal([], sequence: 5)
            var again: FerryError?
            do { _ = try sealer.seal([1], sequence: 5) } catch { again = error }
            #expect(again?.code == .sealOutOfTurn)
            do { _ = try sealer.seal([1], sequence: .max) } catch { again = error }
            #expect(again?.code == .sealExhausted)
            _ = try sealer.seal([1], sequence: 6)
        }

        /// A sender that starts again makes another key; the old records open as long as theirs is among the latest.
        @Test func keysOfEarlierStartsAreRememberedAndBounded() throws {
            var opener = opener()
            var later: [[UInt8]] = []
            for start in 0..<UInt64(RecordOpener.maximumKeys + 1) {
                var sealer = try RecordSealer(for: consumer.publicKey, as: sender, scope: scope)
                _ = try opener.open(sealer.seal([1], sequence: 10 * start), sequence: 10 * start)
                later.append(try sealer.seal([2], sequence: 10 * start + 1))
            }
            #expect(failure { try opener.open(later[0], sequence: 1) }?.code == .sealMissingKey)
            #expect(try opener.open(later[1], sequence: 11) == [2])
        }

        @Test func nothingIsSealedForAKeyThatIsNone() {
            var code: FerryError.Code?
            do {
                _ = try RecordSealer(for: PublicKey(bytes: [UInt8](repeating: 0, count: 32)), as: sender, scope: scope)
            } catch { code = error.code }
            #expect(code == .sealWeakKey)
        }
    }
#endif
