#if Protobuf
    import Ferry
    import FerryProtobuf
    import FerryTesting
    import Foundation
    import SwiftProtobuf
    import TestSupport
    import Testing

    private typealias Reading = Ferry_Tests_Reading
    private typealias Value = Google_Protobuf_Value

    /// reading.pb.swift is made by swift-protobuf 1.39.0, between `#if Protobuf` and `#endif`:
    ///
    ///     protoc --swift_out=. reading.proto
    @Suite(.tags(.codec), .timeLimit(.minutes(5))) struct ProtobufCodecTests {
        private static let full: Reading = {
            var earlier = Reading()
            earlier.samples = [-1, 300_000]
            var reading = Reading()
            reading.sensor = 7
            reading.celsius = 21.5
            reading.humidity = 0
            reading.offset = .min
            reading.place = "Zoë"
            reading.samples = [1, -2, .max]
            reading.notes = ["b": Data([0, 255]), "a": Data(), "é": Data([1])]
            reading.earlier = [earlier, Reading()]
            reading.state = .UNRECOGNIZED(99)
            reading.copy = earlier
            return reading
        }()

        /// In this format an empty payload is a message, and so is one that was cut behind a field.
        @Test func conforms() throws {
            var small = Reading()
            small.samples = [5]
            try CodecConformance(
                ProtobufCodec(), samples: [Self.full, small], refusesForeignBytes: false
            ).check()
            try CodecConformance(
                ProtobufCodec(Google_Protobuf_ListValue.self), samples: [.with { $0.values = [.init(numberValue: 2)] }],
                refusesForeignBytes: false
            ).check()
        }

        /// As Python's protobuf 7.36.2 writes it, with `deterministic=True`.
        @Test func readsAndWritesWhatPythonDoes() throws {
            #expect(try ProtobufCodec().encode(Self.full) == bytes(Self.python))
            #expect(try ProtobufCodec<Reading>().decode(bytes(Self.python)) == Self.full)
        }

        private static let python =
            "08071100000000008035401d0000000020ffffffffffffffffff012a045a6fc3ab32070203feffffff0f3a050a016112"
            + "003a070a0162120200ff3a070a02c3a91201014206320401c0cf24420048635a06320401c0cf24"

        @Test func mapsAreSortedAndUnknownFieldsKept() throws {
            let codec = ProtobufCodec<Reading>()
            let payload = try codec.encode(Self.full)
            for _ in 0..<20 {
                var again = Self.full
                again.notes = Dictionary(uniqueKeysWithValues: Self.full.notes.shuffled())
                #expect(try codec.encode(again) == payload)
            }
            // Field 100, a varint.
            let unknown = bytes("a006 2a")
            #expect(try codec.encode(codec.decode(unknown)) == unknown)
        }

        /// Values of the library's own types in lists and maps.
        private static func nested(_ depth: Int) -> Value {
            (1..<depth).reduce(into: Value(numberValue: 1)) { value, index in
                let inner = value
                value =
                    index % 2 == 0
                    ? Value(listValue: .init(values: [inner, 2]))
                    : Value(structValue: Google_Protobuf_Struct(fields: ["a": inner, "b": 3]))
            }
        }

        /// Messages in fields, in lists and in maps, each a level; one more is refused by both sides.
        @Test func depthIsTheSameForBothSides() throws {
            let steps: [(Reading) -> Reading] = [
                { inner in .with { $0.earlier = [inner] } }, { inner in .with { $0.copy = inner } },
            ]
            for step in steps {
                var message = Reading()
                for depth in 1...10 {
                    let payload = try ProtobufCodec<Reading>().encode(message)
                    for limit in 1...10 {
                        let codec = ProtobufCodec<Reading>(maximumDepth: limit)
                        #expect(((try? codec.encode(message)) != nil) == (depth <= limit), "\(depth) \(limit)")
                        #expect(((try? codec.decode(payload)) != nil) == (depth <= limit), "\(depth) \(limit)")
                    }
                    message = step(message)
                }
            }
            for depth in 1...12 {
                let value = Self.nested(depth)
                let payload = try ProtobufCodec<Value>().encode(value)
                for limit in 1...30 {
                    let codec = ProtobufCodec<Value>(maximumDepth: limit)
                    guard (try? codec.encode(value)) != nil else { continue }
                    #expect(try codec.decode(payload) == value, "\(depth) \(limit)")
                }
            }
            let deep = #expect(throws: FerryError.self) {
                _ = try ProtobufCodec<Reading>(maximumDepth: 1).encode(.with { $0.copy = Reading() })
            }
            #expect(deep?.message == "This ferry.tests.Reading cannot be sent: it nests deeper than 1 messages.")
        }

        /// Tens of thousands of levels, as hostile peers send them.
        @Test(.tags(.hostility)) func deepNestingEndsInAnError() throws {
            var payload: [UInt8] = []
            for _ in 0..<100_000 {
                var head: [UInt8] = [0x5A]
                Varint.append(UInt64(payload.count), to: &head)
                payload = head + payload
                if payload.count > 100_000 { break }
            }
            // Groups that begin, of field 100.
            for hostile in [payload, (0..<100_000).flatMap { _ in [0xA3, 0x06] as [UInt8] }] {
                let error = #expect(throws: FerryError.self) {
                    _ = try ProtobufCodec<Reading>(maximumDepth: 256).decode(hostile)
                }
                #expect(error?.code == .decodingFailed && error?.message.contains("ferry.tests.Reading") == true)
            }
        }

        @Test func sizeIsTheSameForBothSides() throws {
            let codec = ProtobufCodec<Reading>(maximumSize: 100)
            let fits = Reading.with { $0.place = String(repeating: "a", count: 98) }
            let payload = try codec.encode(fits)
            #expect(payload.count == 100)
            #expect(try codec.decode(payload) == fits)
            let large = Reading.with { $0.place = String(repeating: "a", count: 99) }
            let refused = #expect(throws: FerryError.self) { _ = try codec.encode(large) }
            #expect(
                refused?.message
                    == "This ferry.tests.Reading cannot be sent: it has 101 bytes, and at most 100 are written.")
            let error = #expect(throws: FerryError.self) {
                _ = try codec.decode(ProtobufCodec<Reading>().encode(large))
            }
            #expect(error?.message.contains("is not a ferry.tests.Reading: it has 101 bytes") == true)
        }

        @Test func errorsSayWhatAndOfWhichType() {
            for (hex, words) in [
                ("08", "a field is cut short"), ("2a02c328", "a field of text is not UTF-8"),
                ("00", "not Protocol Buffers"),
                ("1105", "a field is cut short"),
            ] {
                let error = #expect(throws: FerryError.self) { _ = try ProtobufCodec<Reading>().decode(bytes(hex)) }
                #expect(error?.code == .decodingFailed)
                #expect(
                    error?.message.hasPrefix("The received message is not a ferry.tests.Reading: ") == true
                        && error?.message.contains(words) == true, "\(String(describing: error))")
            }
        }

        @Test func theHelloOfChannelsHasItsNumber() { #expect(ProtobufCodec<Reading>().identifier == 6) }

        /// Mutations of real messages; `scripts/check protobuf` runs a million.
        @Test(.tags(.hostility)) func mutationsAreRefusedOrRead() throws {
            let count = ProcessInfo.processInfo.environment["PROTOBUF_INPUTS"].flatMap { Int($0) } ?? 20_000
            let codec = ProtobufCodec<Reading>(maximumSize: 4096, maximumDepth: 16)
            let values = ProtobufCodec<Value>(maximumSize: 4096, maximumDepth: 16)
            let seeds = [
                try codec.encode(Self.full), try codec.encode(.with { $0.earlier = [Self.full, Self.full] }),
                try values.encode(Self.nested(7)),
            ]
            var random = SplitMix64(seed: 9)
            var accepted = 0
            for index in 0..<count {
                var input = seeds[index % seeds.count]
                for _ in 0..<1 + random.next() % 4 {
                    let place = Int(random.next() % UInt64(max(1, input.count)))
                    guard !input.isEmpty else { break }
                    switch random.next() % 5 {
                    case 0: input[place] = UInt8(truncatingIfNeeded: random.next())
                    case 1: input[place] ^= 1 << UInt8(random.next() % 8)
                    case 2: input.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
                    case 3: input.remove(at: place)
                    default: input.removeLast(Int(random.next() % UInt64(input.count)))
                    }
                }
                if let message = try? codec.decode(input) {
                    accepted += 1
                    // A number that is none does not equal itself.
                    guard message == message, let payload = try? codec.encode(message) else { continue }
                    #expect(try codec.decode(payload) == message)
                }
                _ = try? values.decode(input)
            }
            #expect(accepted > count / 100)
        }
    }
#endif
