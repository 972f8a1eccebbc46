#if Records
    import Ferry
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords
    @testable import RecordsWorker

    /// Relayed records, which several stores carry to one peer.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct RelayTests {
        let tests: ExchangeTests

        init() throws { tests = try ExchangeTests() }

        private func records(_ places: ClosedRange<UInt64>, time: UInt64 = 0) -> [RelayedRecord] {
            places.map { RelayedRecord(sequence: $0, time: time + $0, bytes: bytes("\($0)")) }
        }

        /// The peer's store meets a gateway's as it does any other's.
        private func visit(_ gateway: RecordStore, _ peer: RecordStore) async throws {
            try? await peer.forgetIdentity(of: "gateway")
            try await tests.meet(gateway, peer, names: ("peer", "gateway"))
        }

        private func arrived(_ store: RecordStore) async throws -> [String] {
            let count = try await tests.leftOver(store)
            return count == 0 ? [] : try await tests.take(count, from: store)
        }

        // MARK: Bytes

        @Test(arguments: try vectorCases("relayed-record")) func goldenBytes(_ vector: VectorCase) throws {
            let bytes = try #require(vector.bytes(of: "bytes"))
            guard let record = vector.bytes(of: "record") else {
                let error = #expect(throws: FerryError.self) { try RelayedRecord(decoding: bytes) }
                #expect(error?.code.description == vector.words(of: "error")?.first)
                return
            }
            func number(_ key: String) throws -> UInt64 {
                let words = try #require(vector.words(of: key))
                return try #require(UInt64(words[0]))
            }
            let relayed = try RelayedRecord(sequence: number("sequence"), time: number("time"), bytes: record)
            #expect(relayed.encoded == bytes)
            #expect(try RelayedRecord(decoding: bytes) == relayed)
        }

        @Test func theLargestRecordHasTheOverhead() throws {
            let largest = RelayedRecord(sequence: .max, time: .max, bytes: [])
            #expect(largest.encoded.count == RelayedRecord.overhead)
            #expect(try RelayedRecord(decoding: largest.encoded) == largest)
        }

        @Test(
            arguments: [
                ([], "the sequence"), ([0x80], "the sequence"), ([0x00, 0x01], "the sequence is 0"),
                ([0x01], "the time"),
                ([0x80, 0x00, 0x01], "longer than it needs to be"),
                ([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x01], "too large"),
            ] as [([UInt8], String)])
        func whatIsNoRelayedRecordIsRefused(_ bytes: [UInt8], _ words: String) {
            let error = #expect(throws: FerryError.self) { try RelayedRecord(decoding: bytes) }
            #expect(error?.code == .misbehavingPeer && error?.message.contains(words) == true, "\(error as Any)")
        }

        @Test func streamsHaveNamesThatNoAppHas() async throws {
            let stream = RelayStream(origin: "orders", name: "a:b")
            #expect(stream.text == "ferry-relay:orders:a:b" && RelayStream(stream.text) == stream)
            for text in ["orders", "ferry-relay", "ferry-relay:orders", "ferry-relay::a", "Ferry-relay:a:b"] {
                #expect(RelayStream(text) == nil)
            }
            let store = try tests.open("a")
            await #expect(throws: FerryError.self) { try await store.append([1], to: "p", stream: stream.text) }
            for (origin, name) in [("", "a"), ("a:b", ""), ("a", String(repeating: "n", count: 128))] {
                let error = await #expect(throws: FerryError.self) {
                    try await store.relay(
                        [RelayedRecord(sequence: 1, time: 1, bytes: [])], from: origin, stream: name, to: "p")
                }
                #expect(error?.code == .invalidConfiguration && error?.fate == .nothingSent)
            }
            #expect(try await store.waiting().isEmpty)
            await store.close()
        }

        // MARK: Places

        @Test(
            arguments: [
                // What comes after 10 at 100: a later place; a later time, though the place was given before; neither.
                ((11, 101), true), ((11, 100), true), ((11, 50), true), ((5, 101), true),
                ((10, 100), false), ((9, 99), false), ((9, 100), false), ((10, 99), false),
            ] as [((UInt64, UInt64), Bool)])
        func aPlaceIsTakenOnce(_ place: (UInt64, UInt64), _ isNew: Bool) {
            var position = RelayPosition(sequence: 10, time: 100)
            let other = RelayPosition(sequence: place.0, time: place.1)
            let wasTaken = position.advance(to: other)
            #expect(wasTaken == isNew)
            #expect(
                position == (isNew ? .init(sequence: place.0, time: max(100, place.1)) : .init(sequence: 10, time: 100))
            )
            // The same once more is known by then.
            let isTakenAgain = position.advance(to: other)
            #expect(!isTakenAgain)
        }

        // MARK: Stores

        @Test func aPeerTakesEachRecordOnceWhoeverBringsIt() async throws {
            let (one, two, peer) = try (tests.open("one"), tests.open("two"), tests.open("peer"))
            let last = try await one.relay(records(1...3), from: "down", stream: "s", to: "peer")
            #expect(last == 3)
            try await visit(one, peer)
            #expect(
                try await one.relayedThrough(to: "peer") == [
                    .init(origin: "down", stream: "s", committedThrough: 3, waiting: 0)
                ])
            // The second store begins with what it thinks the peer may not have.
            try await two.relay(records(2...5), from: "down", stream: "s", to: "peer")
            try await two.relay(records(1...2), from: "down", stream: "t", to: "peer")
            try await visit(two, peer)
            // The first has had some of that too, before it lost the peer.
            try await one.relay(records(4...4), from: "down", stream: "s", to: "peer")
            try await visit(one, peer)
            try await one.relay(records(6...7), from: "down", stream: "s", to: "peer")
            try await visit(one, peer)
            var found: [String: [String]] = [:]
            for try await record in peer.inbox {
                let origin = try #require(record.origin)
                #expect(origin.name == "down" && String(decoding: record.bytes, as: UTF8.self) == "\(origin.sequence)")
                #expect(origin.time == origin.sequence && record.peer == "gateway")
                found[origin.stream, default: []].append("\(origin.sequence)")
                try await record.done()
                if found["s"]?.last == "7", found["t"]?.last == "2" { break }
            }
            #expect(found == ["s": ["1", "2", "3", "4", "5", "6", "7"], "t": ["1", "2"]])
            #expect(try await tests.leftOver(peer) == 0)
            // What was taken out again is given back, to the byte.
            let undone = try await peer.read { _, book in book.inbound.values.map { [$0.count, $0.bytes] } }
            #expect(undone.allSatisfy { $0 == [0, 0] })
            // That a peer has had another store's is no sign of a backup.
            for store in [one, two] {
                #expect(try await store.notices() == [])
            }
            for store in [one, two, peer] { await store.close() }
        }

        @Test func whatWasTakenIsKnownAfterAReopening() async throws {
            let gateway = try tests.open("one")
            var peer = try tests.open("peer")
            try await gateway.relay(records(1...2), from: "down", stream: "", to: "peer")
            try await visit(gateway, peer)
            await peer.close()
            peer = try tests.open("peer")
            let other = try tests.open("two")
            try await other.relay(records(1...3), from: "down", stream: "", to: "peer")
            try await visit(other, peer)
            #expect(try await arrived(peer) == ["1", "2", "3"])
            // The origin has lost its end, and gives the places again.
            try await other.relay(records(2...3, time: 10), from: "down", stream: "", to: "peer")
            try await visit(other, peer)
            #expect(try await arrived(peer) == ["2", "3"])
            for store in [gateway, other, peer] { await store.close() }
        }

        @Test func whatIsWithdrawnLeavesTheAppsOwn() async throws {
            let (gateway, peer) = try (tests.open("one"), tests.open("peer"))
            try await gateway.append(bytes("own"), to: "peer", stream: "s")
            try await gateway.relay(records(1...4), from: "down", stream: "s", to: "peer")
            try await gateway.relay(records(1...1), from: "down", stream: "s", to: "other")
            #expect(try await gateway.withdrawRelayed(to: "peer") == 4)
            #expect(try await gateway.withdrawRelayed(to: "peer") == 0)
            #expect(try await gateway.withdrawRelayed(to: "nobody") == 0)
            #expect(
                try await gateway.waiting().map { [$0.peer, $0.stream, "\($0.count)"] } == [
                    ["other", "ferry-relay:down:s", "1"], ["peer", "ferry-relay:down:s", "0"], ["peer", "s", "1"],
                ])
            try await gateway.relay(records(5...5), from: "down", stream: "s", to: "peer")
            try await visit(gateway, peer)
            #expect(Set(try await arrived(peer)) == ["own", "5"])
            for store in [gateway, peer] { await store.close() }
        }

        @Test func bytesThatAreNoRelayedRecordEndTheExchange() async throws {
            let (gateway, peer) = try (tests.open("one"), tests.open("peer"))
            let name = RelayStream(origin: "down", name: "s").text
            _ = try await gateway.put(
                [RelayedRecord(sequence: 1, time: 1, bytes: []).encoded, [0x00]], to: "peer", name, .normal, nil,
                .refuse)
            let (near, far) = PacketLink.pair()
            let channels = try (
                MessageChannel(over: near, codec: BytesCodec()), MessageChannel(over: far, codec: BytesCodec())
            )
            async let sending = gateway.exchange(over: channels.0, with: "peer")
            let error = await #expect(throws: FerryError.self) {
                try await peer.exchange(over: channels.1, with: "gateway")
            }
            #expect(error?.code == .misbehavingPeer && error?.message.contains("relayed record") == true)
            _ = try? await sending
            #expect(try await tests.leftOver(peer) == 0)
            // The store goes on.
            try await gateway.withdrawRelayed(to: "peer")
            try await gateway.relay(records(1...1), from: "down", stream: "s", to: "peer")
            try await visit(gateway, peer)
            #expect(try await arrived(peer) == ["1"])
            for store in [gateway, peer] { await store.close() }
        }

        @Test func aFileOfTheFirstVersionIsBroughtUpToDate() async throws {
            let path = tests.folder.file("peer")
            let database = try DatabaseQueue(path: path)
            try await database.writeWithoutTransaction { database in
                try Schema.prepare(database, at: path, Array(Schema.migrations.prefix(1)))
                try database.execute(
                    sql: """
                        INSERT INTO ferry_store VALUES (1, 1, 2);
                        INSERT INTO ferry_opening VALUES (1, 3);
                        INSERT INTO ferry_peer (id, name) VALUES (1, 'gateway');
                        INSERT INTO ferry_inbound VALUES (1, 1, 'ferry-relay:down:s', 7, 8, 9, 1, 1, 5);
                        INSERT INTO ferry_position VALUES (1, 7, 8, 9);
                        INSERT INTO ferry_arrived VALUES (1, 1, 7, 8, 9, x'010168656C');
                        """)
            }
            try database.close()
            let (peer, gateway) = try (tests.open("peer"), tests.open("one"))
            #expect(peer.epoch.generation == 2)
            try await gateway.relay(records(1...2), from: "down", stream: "s", to: "peer")
            try await visit(gateway, peer)
            #expect(try await arrived(peer) == ["hel", "1", "2"])
            for store in [gateway, peer] { await store.close() }
            let reopened = try DatabaseQueue(path: path)
            let version = try await reopened.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }
            #expect(version == Schema.migrations.count)
        }
    }
#endif
