#if Records
    import Ferry
    import FerryRecords
    import TestSupport
    import Testing

    /// Records that are handed on, and kept until whoever has them is sure.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct KeepingTests {
        private func read(_ count: Int, from store: RecordStore) async throws -> [ArrivedRecord] {
            var inbox = store.inbox.makeAsyncIterator()
            var records: [ArrivedRecord] = []
            while records.count < count, let record = try await inbox.next() { records.append(record) }
            return records
        }

        private func texts(_ records: [ArrivedRecord], _ stream: String) -> [String] {
            records.filter { $0.id.stream == stream }.map { String(decoding: $0.bytes, as: UTF8.self) }
        }

        @Test func manyAreDoneAtOnceAndTheRestComesAgain() async throws {
            let exchange = try ExchangeTests()
            let a = try exchange.open("a")
            let b = try exchange.open("b") {
                $0.largestRecord = 100
                $0.inboxCapacity = 5000
            }
            for number in 0..<200 { try await a.append(Array("\(number)".utf8), to: "b", stream: "s\(number % 2)") }
            // The inbox takes no more than some, so that both meet until it has those, however slow the machine is.
            var kept = 0
            try await until("more than half arrive") {
                try await exchange.meet(a, b, times: 1)
                kept = try await b.undone()
                return kept > 100
            }
            #expect(kept < 200)
            let first = try await read(kept, from: b)
            let even = first.filter { $0.id.stream == "s0" }
            #expect(try await b.done(through: [even[49].place]) == 50)
            #expect(try await b.done(through: [even[49].place]) == 0)
            #expect(try await b.undone() == kept - 50)
            try await b.readAgain()
            let second = try await read(kept - 50, from: b)
            #expect(texts(second, "s0") == Array(texts(first, "s0").dropFirst(50)))
            #expect(texts(second, "s1") == texts(first, "s1"))
            // What has gone makes room for the rest.
            let last = ["s0", "s1"].compactMap { stream in second.last { $0.id.stream == stream }?.place }
            #expect(try await b.done(through: last) == kept - 50)
            try await exchange.meet(a, b)
            let third = try await read(200 - kept, from: b)
            #expect(texts(first, "s0") + texts(third, "s0") == (0..<100).map { "\($0 * 2)" })
            #expect(texts(first, "s1") + texts(third, "s1") == (0..<100).map { "\($0 * 2 + 1)" })
            #expect(try await b.done(through: third.map(\.place)) == 200 - kept)
            #expect(try await exchange.leftOver(b) == 0)
            await a.close()
            await b.close()
        }

        /// Each record comes once and in order, whether one is taken or all that are at hand.
        @Test func pagesAndSingleRecordsFollowEachOther() async throws {
            let exchange = try ExchangeTests()
            let a = try exchange.open("a")
            let b = try exchange.open("b")
            for number in 0..<600 { try await a.append(Array("\(number)".utf8), to: "b", stream: "s\(number % 3)") }
            try await exchange.meet(a, b)
            var largest = 0
            for pass in 0..<2 {
                var inbox = b.inbox.makeAsyncIterator()
                var records: [ArrivedRecord] = []
                while records.count < 600 {
                    if records.count % 2 == pass {
                        records += [try #require(try await inbox.next())]
                    } else {
                        let page = try #require(try await inbox.page())
                        #expect(!page.isEmpty)
                        largest = max(largest, page.count)
                        records += page
                    }
                    // In the middle everything begins again.
                    if pass == 0, records.count > 300 { break }
                }
                let expected = (0..<600).map { "\($0)" }
                for stream in 0..<3 {
                    let texts = texts(records, "s\(stream)")
                    let all = expected.indices.filter { $0 % 3 == stream }.map { expected[$0] }
                    #expect(texts == Array(all.prefix(texts.count)))
                }
                if pass == 1 { #expect(records.count == 600) }
                try await b.readAgain()
            }
            #expect(largest > 1 && largest <= 128)
            await a.close()
            await b.close()
        }
    }
#endif
