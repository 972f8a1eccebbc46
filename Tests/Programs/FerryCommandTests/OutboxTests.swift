#if Records
    import ArgumentParser
    import Ferry
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    @Suite(.tags(.program, .records), .timeLimit(.minutes(5))) struct OutboxTests {
        private func inFolder(_ body: (String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("outbox-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await body(path + "/store")
        }

        @Test func whatIsSentIsListedAndShown() async throws {
            try await inFolder { path in
                #expect(try await Outbox.Send.parse([path, "collector", "21.5", "--stream", "t"]).append() == 1)
                #expect(
                    try await Outbox.Send.parse([path, "collector", "bell\u{7}", "--stream", "t", "--priority", "3"])
                        .append()
                        == 1)
                let list = try await Outbox.List.parse([path]).text().split(separator: "\n")
                #expect(list.count == 2)
                #expect(list[1].split(separator: " ") == ["collector", "t", "2", "9", "0"])
                let shown = try await Outbox.Show.parse([path, "collector", "--stream", "t"]).text().split(
                    separator: "\n")
                #expect(shown.count == 3)
                #expect(shown[1].hasPrefix("1 ") && shown[1].hasSuffix("21.5"))
                #expect(shown[2].hasSuffix("bell\u{FFFD}"))
            }
        }

        @Test func aPeerIsListedAndForgotten() async throws {
            try await inFolder { path in
                #expect(try await Outbox.Send.parse([path, "collector", "21.5"]).append() == 1)
                let fresh = try await Outbox.Peers.parse([path]).text().split(separator: "\n")
                #expect(fresh.last?.split(separator: " ") == ["collector", "-", "-", "-", "-", "1", "0"])
                let store = try RecordStore.open(path)
                let other = try RecordStore.open(path + "-other")
                let (near, far) = try await SocketPair.open(path + ".socket")
                let channels = try [near, far].map { try MessageChannel(over: $0, codec: BytesCodec()) }
                async let first = store.exchange(over: channels[0], with: "collector")
                async let second = other.exchange(over: channels[1], with: "sender")
                try await until("the record is there") { try await other.undone() == 1 }
                try await until("it is forgotten here") { try await store.waiting().map(\.count) == [0] }
                try await store.endExchange(with: "collector")
                _ = try await (first, second)
                await store.close()
                await other.close()
                let met = try await Outbox.Peers.parse([path]).text().split(separator: "\n")
                let words = try #require(met.last).split(separator: " ").map(String.init)
                #expect(words == ["collector", "\(other.id)", "\(other.epoch)", "address", "-", "0", "0"])
                #expect(
                    try await Outbox.Forget.parse([path, "collector"]).text() == "collector can come with another store"
                )
                let forgotten = try await Outbox.Peers.parse([path]).text().split(separator: "\n")
                #expect(forgotten.last?.split(separator: " ") == ["collector", "-", "-", "-", "-", "0", "0"])
                let stranger = await #expect(throws: CommandFailure.self) {
                    try await Outbox.Forget.parse([path, "nobody"]).text()
                }
                #expect(stranger?.description.contains("knows no peer") == true)
            }
        }

        @Test func whatIsWrongIsTold() async throws {
            try await inFolder { path in
                let missing = await #expect(throws: CommandFailure.self) { try await Outbox.List.parse([path]).text() }
                #expect(missing?.description.contains("There is no store") == true)
                _ = try await Outbox.Send.parse([path, "p", "1"]).append()
                let stranger = await #expect(throws: CommandFailure.self) {
                    try await Outbox.Show.parse([path, "q"]).text()
                }
                #expect(stranger?.description.contains("no stream") == true)
                let store = try RecordStore.open(path)
                let busy = await #expect(throws: CommandFailure.self) { try await Outbox.List.parse([path]).text() }
                #expect(busy?.description.contains("process \(ProcessInfo.processInfo.processIdentifier)") == true)
                await store.close()
            }
            #expect(throws: (any Error).self) { try Outbox.Send.parse(["s", "p", "--priority", "4"]) }
            #expect(throws: (any Error).self) { try Outbox.Send.parse(["s", "p", "--expires", "0"]) }
            #expect(throws: (any Error).self) { try Outbox.Show.parse(["s", "p", "--limit", "0"]) }
        }

        @Test func previewsAreTextOrHexadecimal() {
            #expect(Outbox.preview(Array("grün".utf8)) == "grün")
            #expect(Outbox.preview([0xFF, 0x01]) == "ff01")
            #expect(Outbox.preview([UInt8](repeating: 0x61, count: 61)) == String(repeating: "a", count: 60) + "...")
        }
    }
#endif
