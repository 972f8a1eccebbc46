import Ferry
import FerryPropertyList
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Binary property lists that no honest encoder writes.
@Suite(.tags(.codec, .hostility)) struct HostileBinaryTests {
    /// Header, objects one after the other, a table of two-byte offsets, trailer.
    private func propertyList(_ objects: [[UInt8]], top: UInt64 = 0, referenceSize: UInt8 = 1) -> [UInt8] {
        var file = Array("bplist00".utf8)
        var table: [UInt8] = []
        for object in objects {
            table += [UInt8(file.count >> 8), UInt8(file.count & 0xFF)]
            file += object
        }
        let tableOffset = UInt64(file.count)
        file += table + [0, 0, 0, 0, 0, 0, 2, referenceSize]
        for value in [UInt64(objects.count), top, tableOffset] {
            file += (0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * $0)) }
        }
        return file
    }

    private func refusal<M>(_ payload: [UInt8], _ codec: PropertyListCodec<M>) throws -> String {
        let error = try #require(throws: FerryError.self) { _ = try codec.decode(payload) }
        #expect(error.code == .decodingFailed)
        return error.message
    }

    @Test func theBuilderBuilds() throws {
        #expect(try Plain().decode(propertyList([[0xD1, 1, 2], [0x51, 0x61], [0x51, 0x62]])) == ["a": "b"])
    }

    @Test func objectsThatContainThemselves() throws {
        let codec = PropertyListCodec<Nested>()
        #expect(try refusal(propertyList([[0xA1, 0]]), codec).contains("contains itself"))
        #expect(try refusal(propertyList([[0xA1, 1], [0xA1, 2], [0xA2, 3, 0], [0xA0]]), codec).contains("itself"))
        #expect(try refusal(propertyList([[0xD1, 1, 0], [0x51, 0x61]]), codec).contains("contains itself"))
    }

    @Test func oneObjectManyTimesOver() throws {
        // Each list has the next one twice: 2^40 lists from 41 objects.
        let doubling = (0..<40).map { [0xA2, UInt8($0 + 1), UInt8($0 + 1)] } + [[0xA0]]
        #expect(try refusal(propertyList(doubling), PropertyListCodec<Nested>()).contains("maximumExpandedSize"))
        // One long string, 200 times.
        let strings = [
            [0xAF, 0x10, 200] + [UInt8](repeating: 1, count: 200),
            [0x5F, 0x11, 0x03, 0xE8]
                + [UInt8](repeating: 0x61, count: 1000),
        ]
        let codec = PropertyListCodec<[String]>(maximumExpandedSize: 100_000)
        #expect(try refusal(propertyList(strings), codec).contains("maximumExpandedSize"))
        #expect(try PropertyListCodec<[String]>().decode(propertyList(strings)).count == 200)
    }

    /// Counts at which Foundation's own scanner traps or reads outside the message.
    @Test(arguments: [0x4F, 0x5F, 0x6F, 0xAF, 0xCF, 0xDF] as [UInt8])
    func impossibleCounts(marker: UInt8) throws {
        let counts: [[UInt8]] = [
            [0x10, 0xFF], [0x13, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x13, 0x80, 0, 0, 0, 0, 0, 0, 0],
            [0x13, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x13, 0x40, 0, 0, 0, 0, 0, 0, 0],
            [0x14] + [UInt8](repeating: 0xFF, count: 16), [0x1F, 1], [0x51, 1], [],
        ]
        for count in counts {
            for top in [[marker] + count, [0xA1, 1]] as [[UInt8]] {
                _ = try refusal(propertyList([top, [marker] + count]), PropertyListCodec<[String]>())
                _ = try refusal(propertyList([top, [marker] + count]), Plain())
            }
        }
    }

    /// A UTF-16 string counts code units; Foundation checks that many bytes and reads twice as many.
    @Test func utf16StringsThatRunOut() throws {
        for count in 1...14 as ClosedRange<UInt8> {
            let payload = propertyList([[0xA1, 1], [0x60 | count] + [UInt8](repeating: 0, count: Int(count))])
            _ = try refusal(payload, PropertyListCodec<[String]>())
        }
    }

    @Test func referencesAndOffsetsOutOfRange() throws {
        let codec = PropertyListCodec<[String]>()
        #expect(try refusal(propertyList([[0xA1, 9]]), codec).contains("refers to object 9 of 1"))
        var outside = propertyList([[0xA1, 1], [0x51, 0x61]])
        outside[outside.count - 33] = 0xFF  // the offset of object 1
        #expect(try refusal(outside, codec).contains("outside its objects"))
        outside[outside.count - 33] = 0  // the header
        #expect(try refusal(outside, codec).contains("outside its objects"))
    }

    /// Each field of the trailer with each extreme value.
    @Test func trailers() throws {
        let sound = propertyList([[0xA1, 1], [0x51, 0x61]])
        for field in [8, 16, 24] {
            for value in [UInt64(0), 1, 2, 3, 8, 255, 1 << 31, 1 << 62, 1 << 63, .max] {
                var payload = sound
                for byte in 0..<8 {
                    payload[payload.count - 32 + field + byte] = UInt8(
                        truncatingIfNeeded: value >> UInt64(56 - 8 * byte))
                }
                if payload != sound { #expect(throws: FerryError.self) { try Plain().decode(payload) } }
            }
        }
        for field in [6, 7] {
            for value in [0, 3, 4, 8, 9, 16, 255] as [UInt8] {
                var payload = sound
                payload[payload.count - 32 + field] = value
                #expect(throws: FerryError.self) { try Plain().decode(payload) }
            }
        }
    }

    @Test func cutShort() throws {
        for count in Golden.cardBinary.indices {
            _ = try refusal(Array(Golden.cardBinary.prefix(count)), Plain())
        }
    }

    /// Damage anywhere is refused or read; it never brings the process down.
    @Test func everySingleByteDamaged() throws {
        let codec = PropertyListCodec<Rich>()
        for index in Golden.richBinary.indices {
            for value in [0x00, 0x01, 0x0F, 0x10, 0x13, 0x5F, 0x6F, 0x7F, 0x80, 0xA1, 0xAF, 0xD1, 0xDF, 0xFF] as [UInt8]
            {
                var damaged = Golden.richBinary
                damaged[index] = value
                _ = try? codec.decode(damaged)
            }
        }
    }

    /// A date that is not a number ends the process that prints it.
    @Test(
        arguments: [
            0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001, 0x7FF0_0000_0000_0000,
            0xFFF0_0000_0000_0000, 0x42AC_F8AB_468F_0200, 0xC248_A979_98E0_8000, 0x7FEF_FFFF_FFFF_FFFF,
        ] as [UInt64]) func datesThatAreNone(bits: UInt64) throws
    {
        struct Reading: Codable, Sendable {
            var at: Date
            var other: Date?
        }
        func payload(_ bits: UInt64) -> [UInt8] {
            let date = [0x33] + (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
            return propertyList([[0xD1, 1, 2], [0x52, 0x61, 0x74], date])
        }
        let message = try refusal(payload(bits), PropertyListCodec<Reading>())
        #expect(message.contains("has a date that is none at byte 14. The date is"), "\(message)")
        for seconds in [15_927_175_497_600, -211_845_067_200, 0, 0.5] as [Double] {
            let reading = try PropertyListCodec<Reading>().decode(payload(seconds.bitPattern))
            #expect(reading.at.timeIntervalSinceReferenceDate == seconds)
        }
    }

    /// Foundation keeps one of two values under one key, by another object or in another encoding too.
    @Test func keysThatOccurTwice() throws {
        let codec = PropertyListCodec<[String: Int]>()
        let numbers: [[UInt8]] = [[0x10, 1], [0x10, 2]]
        let keys: [([UInt8], [UInt8])] = [
            ([0x51, 0x61], [0x51, 0x61]), ([0x51, 0x61], [0x61, 0, 0x61]), ([0x50], [0x60]), ([0x50], [0x5F, 0x10, 0]),
            ([0x61, 0, 0xE9], [0x62, 0, 0x65, 0x03, 0x01]),
        ]
        for (first, second) in keys {
            let message = try refusal(propertyList([[0xD2, 1, 2, 3, 4], first, second] + numbers), codec)
            #expect(message.contains("twice in one dictionary"), "\(message)")
        }
        #expect(
            try refusal(propertyList([[0xD2, 1, 1, 2, 3], [0x51, 0x61]] + numbers), codec).contains("\"a\" twice"))
        let different = propertyList([[0xD2, 1, 2, 3, 4], [0x51, 0x61], [0x51, 0x62]] + numbers)
        #expect(try codec.decode(different) == ["a": 1, "b": 2])
        // One key in several dictionaries is the rule.
        let shared = propertyList([[0xA2, 1, 2], [0xD1, 3, 4], [0xD1, 3, 4], [0x51, 0x61], [0x10, 1]])
        #expect(try PropertyListCodec<[[String: Int]]>().decode(shared) == [["a": 1], ["a": 1]])
    }

    @Test func theKeyThatStandsForNil() throws {
        let key = [0x55] + Array("$null".utf8)
        for list in [[[0xD1, 1, 2], key, [0x10, 1]], [[0xD2, 2, 1, 3, 3], key, [0x51, 0x61], [0x10, 1]]] as [[[UInt8]]]
        {
            #expect(try refusal(propertyList(list), PropertyListCodec<[String: Int]>()).contains("the key \"$null\""))
        }
    }

    /// Strings may overlap, so a short message can have long keys: `maximumExpandedSize` bounds their comparison.
    @Test func overlappingKeysAreBounded() throws {
        let count = 200
        let dictionary =
            [0xDF, 0x10, UInt8(count)] + (1..<count).map(UInt8.init) + [1] + [UInt8](repeating: 0, count: count)
        // The last key is the first again, which comes after the limit.
        // 200 strings of about 1000 bytes in 1800 bytes: each begins with a marker and a count within the one before it.
        let body = (0..<450).flatMap { [0x5F, 0x11, 0x03, UInt8(max(0xE8 - $0, 1))] as [UInt8] }
        var file = Array("bplist00".utf8) + dictionary
        let bodyStart = file.count
        file += body
        let table = [8] + (0..<count).map { bodyStart + 4 * $0 }
        let tableOffset = file.count
        file += table.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + [0, 0, 0, 0, 0, 0, 2, 1]
        for value in [table.count, 0, tableOffset] {
            file += (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
        }
        let codec = PropertyListCodec<[String: Int]>(maximumExpandedSize: 150_000)
        #expect(try refusal(file, codec).contains("maximumExpandedSize"))
    }
}
