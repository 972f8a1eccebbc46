import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core, .codec)) struct CodecTests {
    @Test func bytesConform() throws {
        try CodecConformance(BytesCodec(), samples: [[], [0], Array(0...255)], refusesForeignBytes: false).check()
    }

    @Test func textConforms() throws {
        try CodecConformance(TextCodec(), samples: ["", "a", "Zoë 👩‍👩‍👧‍👦\u{0}"], refusesForeignBytes: false).check()
    }

    @Test func textNamesTheFirstWrongByte() throws {
        let error = try #require(throws: FerryError.self) { _ = try TextCodec().decode([0x61, 0xC3, 0x28]) }
        #expect(error.code == .notText)
        #expect(error.message.contains("at byte 1 of 3"))
    }

    /// The kit must find what is wrong, or passing it means nothing.
    @Test func kitFindsAForgetfulCodec() throws {
        struct Forgetful: Codec {
            func encode(_ message: [UInt8]) -> [UInt8] { Array(message.dropLast()) }
            func decode(_ payload: [UInt8]) -> [UInt8] { payload }
        }
        let failure = try #require(throws: ConformanceFailure.self) {
            try CodecConformance(Forgetful(), samples: [[1, 2]], refusesForeignBytes: false).check()
        }
        #expect(failure.requirement == "A message survives the round trip")
    }

    @Test func kitFindsACodecThatReadsNoFurther() throws {
        struct Hasty: Codec {
            func encode(_ message: [UInt8]) -> [UInt8] { [UInt8(message.count)] + message }
            func decode(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
                guard let count = payload.first, payload.count > Int(count) else {
                    throw FerryError(.decodingFailed, "There are too few bytes.")
                }
                return Array(payload.dropFirst().prefix(Int(count)))
            }
        }
        let failure = try #require(throws: ConformanceFailure.self) {
            try CodecConformance(Hasty(), samples: [[1, 2]]).check()
        }
        #expect(failure.requirement == "Bytes after the message are refused")
    }

    @Test func kitFindsACredulousCodec() throws {
        let failure = try #require(throws: ConformanceFailure.self) {
            try CodecConformance(BytesCodec(), samples: [[1, 2]], refusesForeignBytes: true).check()
        }
        #expect(failure.requirement == "A payload cut short is refused")
    }
}
