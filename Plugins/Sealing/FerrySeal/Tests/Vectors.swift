#if Seal
    import Ferry
    import FerrySeal
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// The files of Vectors: where they come from stands in each.
    enum Vectors {
        struct Message: Decodable {
            let payload: String
            let ciphertext: String
        }

        struct Noise: Decodable, CustomTestStringConvertible {
            let name: String
            let pattern: String
            let init_prologue: String
            let resp_prologue: String
            let init_static: String?
            let resp_static: String?
            let init_ephemeral: String
            let resp_ephemeral: String
            let psk: String?
            let messages: [Message]
            var testDescription: String { name }
        }

        struct Encryption: Decodable { let aad, ct, nonce, pt: String }
        struct Export: Decodable { let exporter_context, exported_value: String }
        struct HPKE: Decodable {
            let info, skRm, pkRm, pkSm, enc: String
            let encryptions: [Encryption]
            let exports: [Export]
        }

        struct Record: Decodable {
            let sequence: UInt64
            let record, sealed: String
        }
        struct Records: Decodable {
            let sender, consumer, stream, epoch: String
            let records: [Record]
        }

        static func load<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) throws -> Value {
            let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/\(name)")
            return try JSONDecoder().decode(Value.self, from: Data(contentsOf: file))
        }

        static func noise() throws -> [Noise] {
            struct File: Decodable { let vectors: [Noise] }
            return try load("noise.json", as: File.self).vectors + load("noise-psk.json", as: File.self).vectors
        }
    }

    /// A key of a test, the same in each run.
    func testKey(_ seed: UInt64) -> SecretKey {
        var generator = SplitMix64(seed: seed)
        guard let key = try? SecretKey(bytes: generator.bytes(32)) else { preconditionFailure("32 bytes are a key.") }
        return key
    }

    /// The error that `body` throws; nil when it throws none.
    func failure<Value>(_ body: () throws -> Value) -> FerryError? {
        do {
            _ = try body()
            return nil
        } catch {
            return error as? FerryError
        }
    }
#endif
