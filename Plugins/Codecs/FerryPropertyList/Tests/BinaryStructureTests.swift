import Ferry
import TestSupport
import Testing

@testable import FerryPropertyList

/// The check of binary property lists alone, at every edge of the format and of its limits.
@Suite(.tags(.codec)) struct BinaryStructureTests {
    /// Header, objects, a table of one-byte offsets, trailer.
    private func file(_ objects: [[UInt8]], top: Int = 0, referenceSize: UInt8 = 1) -> [UInt8] {
        var file = Array("bplist00".utf8)
        var table: [UInt8] = []
        for object in objects {
            table += [UInt8(file.count >> 8), UInt8(file.count & 0xFF)]
            file += object
        }
        let tableOffset = file.count
        file += table + [0, 0, 0, 0, 0, 0, 2, referenceSize]
        for value in [objects.count, top, tableOffset] {
            file += (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
        }
        return file
    }

    private func refusal(_ bytes: [UInt8], depth: Int = 64, size: Int = 1 << 20) -> String? {
        do {
            var check = try BinaryPropertyListCheck(bytes)
            try check.run(maximumDepth: depth, maximumExpandedSize: size)
            return nil
        } catch {
            return error.message
        }
    }

    /// Arrays within arrays: object n holds object n + 1, and the last is empty.
    private func chain(_ count: Int, from first: Int = 0) -> [[UInt8]] {
        (1..<count).map { [0xA1, UInt8(first + $0)] } + [[0xA0]]
    }

    @Test(arguments: 1...9) func depthCountsContainers(count: Int) {
        #expect(refusal(file(chain(count)), depth: count) == nil)
        #expect(refusal(file(chain(count)), depth: count - 1)?.contains("nests deeper than \(count - 1)") == true)
        // A value within the innermost adds none.
        var objects = chain(count)
        objects[count - 1] = [0xA1, UInt8(count)]
        #expect(refusal(file(objects + [[0x09]]), depth: count) == nil)
    }

    /// An object that was measured before is as high where it is met again.
    @Test(arguments: 1...6) func depthCountsSharedObjectsWhereTheyAreMet(height: Int) {
        // The top holds the chain, and then an array that holds the same chain.
        let objects = [[0xA2, 2, 1], [0xA1, 2]] + chain(height, from: 2)
        #expect(refusal(file(objects), depth: height + 2) == nil)
        #expect(refusal(file(objects), depth: height + 1)?.contains("nests deeper") == true)
        // The other way round the deeper place comes first.
        let deeperFirst = [[0xA2, 1, 2], [0xA1, 2]] + chain(height, from: 2)
        #expect(refusal(file(deeperFirst), depth: height + 2) == nil)
        #expect(refusal(file(deeperFirst), depth: height + 1)?.contains("nests deeper") == true)
        // And the height of what holds it is right where that is met again.
        let twice: [[UInt8]] = [[0xA2, 2, 1], [0xA1, 2], [0xA2, 4, 3], [0xA0]] + chain(height, from: 4)
        #expect(refusal(file(twice), depth: height + 3) == nil)
        #expect(refusal(file(twice), depth: height + 2)?.contains("nests deeper") == true)
    }

    /// A value counts 8 bytes and its own, wherever it is met.
    @Test func expandedSizesAreExact() {
        let text: [UInt8] = [0x5A] + [UInt8](repeating: 0x61, count: 10)
        let cases: [([[UInt8]], Int)] = [
            ([[0xA0]], 8), ([[0xA1, 1], text], 8 + 18), ([[0xA2, 1, 1], text], 8 + 36),
            ([[0xA3, 1, 1, 2], [0xA2, 2, 2], text], 8 + 2 * (8 + 36) + 18), ([[0xD1, 1, 1], text], 8 + 36),
            ([[0xA1, 1], [0x13, 0, 0, 0, 0, 0, 0, 0, 1]], 8 + 16), ([[0xA1, 1], [0x62, 0, 0x61, 0, 0x62]], 8 + 12),
        ]
        for (objects, size) in cases {
            #expect(refusal(file(objects), size: size) == nil, "\(objects)")
            #expect(refusal(file(objects), size: size - 1)?.contains("maximumExpandedSize") == true, "\(objects)")
        }
    }

    @Test func integersHave64Bits() {
        let zeros = [UInt8](repeating: 0, count: 8)
        let ones = [UInt8](repeating: 0xFF, count: 8)
        #expect(refusal(file([[0xA1, 1], [0x14] + zeros + ones])) == nil)
        for place in 0..<8 {
            var high = zeros
            high[place] = 1
            #expect(refusal(file([[0xA1, 1], [0x14] + high + ones]))?.contains("above 64 bits") == true)
        }
        #expect(refusal(file([[0xA1, 1], [0x14] + ones + ones]))?.contains("above 64 bits") == true)
    }

    /// Which markers there are, and how many bytes belong to each: exactly those are enough.
    @Test func everyMarkerHasItsBytes() {
        for marker in UInt8.min ... .max {
            let low = Int(marker & 0x0F)
            let needed: Int? =
                switch marker >> 4 {
                case 0x0: [0x00, 0x08, 0x09].contains(marker) ? 0 : nil
                case 0x1: low <= 4 ? 1 << low : nil
                case 0x2: low == 2 || low == 3 ? 1 << low : nil
                case 0x3: low == 3 ? 8 : nil
                case 0x4, 0x5: low < 15 ? low : nil
                case 0x6: low < 15 ? 2 * low : nil
                case 0x8: low + 1
                case 0xA, 0xC: low < 15 ? low : nil
                case 0xD: low < 15 ? 2 * low : nil
                default: nil
                }
            // Its references are to an empty array.
            let body = [UInt8](repeating: marker >> 4 >= 0xA ? 2 : 0, count: needed ?? 40)
            let objects: [[UInt8]] = [[0xA1, 1], [marker] + body, [0xA0]]
            // A count that follows is 0x02...: no integer, so refused as well.
            #expect((refusal(file(objects)) == nil) == (needed != nil), "marker \(marker)")
            // The table follows the last object, so a byte less is too few.
            guard let needed, needed > 0, marker >> 4 < 0xA else { continue }
            let short: [[UInt8]] = [[0xA1, 2], [0xA0], [marker] + body.dropLast()]
            #expect(refusal(file(short)) != nil, "marker \(marker) with \(needed - 1) bytes")
            #expect(refusal(file([[0xA1, 2], [0xA0], [marker] + body])) == nil, "marker \(marker) at the end")
        }
    }

    @Test func countsThatFollow() {
        for (count, isSound) in [
            ([0x10, 3], true), ([0x10, 4], false), ([0x11, 0, 3], true), ([0x12, 0, 0, 0, 3], true),
            ([0x13, 0, 0, 0, 0, 0, 0, 0, 3], true), ([0x14] + [UInt8](repeating: 0, count: 15) + [3], false),
            ([0x10, 0], true),
        ] as [([UInt8], Bool)] {
            let objects = [[0xA1, 2], [0xA0], [0x5F] + count + [0x61, 0x62, 0x63]]
            #expect((refusal(file(objects)) == nil) == isSound, "\(count)")
        }
    }

    @Test(arguments: [1, 2, 3, 8] as [UInt8]) func referencesOfEverySize(size: UInt8) {
        func reference(_ number: UInt8) -> [UInt8] { [UInt8](repeating: 0, count: Int(size) - 1) + [number] }
        #expect(refusal(file([[0xA1] + reference(1), [0xA0]], referenceSize: size)) == nil)
        #expect(
            refusal(file([[0xA1] + reference(2), [0xA0]], referenceSize: size))?.contains("refers to object 2 of 2")
                == true)
        #expect(
            refusal(file([[0xA1] + reference(0), [0xA0]], referenceSize: size))?.contains("contains itself") == true)
    }

    @Test func theTopMayBeAnyObject() {
        let objects: [[UInt8]] = [[0xA1, 0], [0xA0]]
        #expect(refusal(file(objects, top: 1)) == nil)
        #expect(refusal(file(objects, top: 0))?.contains("contains itself") == true)
        #expect(refusal(file(objects, top: 2))?.contains("states 2 objects, of which 2 is the top") == true)
    }

    @Test func theSmallestFile() {
        let smallest = file([[0xA0]])
        #expect(smallest.count == 8 + 1 + 2 + 32)
        #expect(refusal(smallest) == nil)
        #expect(refusal(Array(smallest.suffix(40)))?.contains("is cut short: it has 40 bytes") == true)
    }

    @Test func limitsAreHeldToTheirBounds() {
        #expect(PropertyListCodec<[Int]>(maximumDepth: 0).maximumDepth == 1)
        #expect(PropertyListCodec<[Int]>(maximumDepth: 257).maximumDepth == 256)
        #expect(PropertyListCodec<[Int]>(maximumExpandedSize: -1).maximumExpandedSize == 0)
        #expect(PropertyListCodec<[Int]>(maximumExpandedSize: .max).maximumExpandedSize == .max / 2)
        #expect(PropertyListCodec<[Int]>().identifier == 4)
    }

    // MARK: XML

    private func xmlRefusal(_ text: String, depth: Int) -> String? {
        var check = XMLPropertyListCheck(Array(text.utf8), maximumDepth: depth)
        do {
            try check.run()
            return nil
        } catch {
            return error.message
        }
    }

    /// The element `plist` around it adds none.
    @Test(arguments: [1, 2, 64]) func xmlDepth(limit: Int) {
        func nested(_ count: Int) -> String {
            String(repeating: "<array>", count: count) + String(repeating: "</array>", count: count)
        }
        for (before, after) in [("", ""), ("<plist>", "</plist>")] {
            #expect(xmlRefusal(before + nested(limit) + after, depth: limit) == nil)
            #expect(
                xmlRefusal(before + nested(limit + 1) + after, depth: limit)?.contains("deeper than \(limit)") == true)
        }
        // Neither do empty elements, nor what is closed.
        #expect(xmlRefusal("<array><array/><string>a</string><array/></array>", depth: 1) == nil)
        #expect(
            xmlRefusal("<array><array></array><array></array><array></array></array>", depth: 2) == nil)
    }
}
