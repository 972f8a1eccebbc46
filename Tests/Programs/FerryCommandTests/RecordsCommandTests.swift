#if Records
    import ArgumentParser
    import Ferry
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand
    @testable import FerryRecords

    /// Two ends of a Unix socket, as the commands open them.
    enum SocketPair {
        static func open(_ path: String) async throws -> (any Link, any Link) {
            let options = try TransferOptions.parse(["--transport", "unix:\(path)"])
            let listener = try await options.open("receiver").listen()
            defer { listener.close() }
            let near = try await options.open("sender").connect(timeout: .unreached)
            for await far in listener.links { return (near, far) }
            throw FerryError(.disconnected, "The listener ended.")
        }
    }

    /// What `ferry send --store` and `ferry receive --store` do, in this process.
    @Suite(.tags(.program, .records), .timeLimit(.minutes(5))) struct RecordsCommandTests {
        private func inFolder(_ body: (String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("rec-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await body(path + "/")
        }

        private let report = TransferReport(verb: "Sent", isJSON: false, isQuiet: true)

        private func sender(_ store: RecordStore, _ options: TransferOptions) -> RecordsSender {
            RecordsSender(
                store, to: "receiver", stream: "", asLines: false, options, listens: false, isFleet: false, inbox: nil,
                report)
        }

        @Test func pausesGrowUntilTheTimeIsOver() throws {
            var times = RetryTimes(limit: .seconds(60))
            var now = Timestamp.zero
            var pauses: [Duration] = []
            while let pause = times.failed("why", at: now, chance: 1) {
                pauses.append(pause)
                now = now + pause
                try #require(pauses.count < 1000)
            }
            #expect(
                pauses.prefix(4) == [.milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800)])
            #expect(pauses.max() == RetryTimes.longestPause && now == Timestamp.zero + .seconds(60))
            #expect(times.reason == "why" && times.left(at: now) == .zero)
            times.moved()
            #expect(times.reason == nil && times.left(at: now) == .seconds(60))
            #expect(times.failed("other", at: now, chance: 0) == .milliseconds(50))
        }

        /// Tells a sender that there is no place for it, as a hub does.
        private func refuse(_ link: any Link) async throws {
            let channel = try MessageChannel(over: link, codec: BytesCodec())
            let reason = "All slots are taken."
            try await channel.send(RecordsMessage.end(code: 0, text: reason).encoded)
            var messages = channel.messages.makeAsyncIterator()
            while let _ = try? await messages.next() {}
            channel.close()
        }

        /// A hub without a slot, a receiver that is just starting: more often than a sender once tried.
        @Test func aSenderThatIsRefusedTriesAgain() async throws {
            try await inFolder { folder in
                let options = try TransferOptions.parse(["--transport", "unix:\(folder)s"])
                let (store, other) = try (RecordStore.open(folder + "out"), RecordStore.open(folder + "in"))
                try await store.append([1], to: "receiver")
                let listener = try await options.open("receiver").listen()
                let sending = Task { try await sender(store, options).run([]) }
                var count = 0
                for await link in listener.links {
                    count += 1
                    switch count {
                    case 1...3: link.close()
                    case 4...6: try await refuse(link)
                    default:
                        try await other.exchange(over: try MessageChannel(over: link, codec: BytesCodec()))
                        if try await store.waiting().map(\.count) == [0] { listener.close() }
                    }
                }
                try await sending.value
                #expect(count == 7)
                #expect(try await other.undone() == 1)
                await store.close()
                await other.close()
            }
        }

        @Test func theTrueReasonIsTold() async throws {
            try await inFolder { folder in
                let options = try TransferOptions.parse(["--transport", "unix:\(folder)s", "--timeout", "0.5"])
                let store = try RecordStore.open(folder + "out")
                try await store.append([1], to: "receiver")
                let listener = try await options.open("receiver").listen()
                let refusing = Task {
                    for await link in listener.links { try await refuse(link) }
                }
                let error = await #expect(throws: Refusal.self) { try await sender(store, options).run([]) }
                let text = try #require(error?.description)
                #expect(text.contains("All slots are taken.") && text.contains("1 record waits"), "\(text)")
                listener.close()
                _ = await refusing.result
                await store.close()
            }
        }

        /// Whatever a stranger says, the next sender is waited for.
        @Test func aStrangerEndsNoReceiver() async throws {
            try await inFolder { folder in
                let options = try TransferOptions.parse(["--transport", "unix:\(folder)s", "--json"])
                let (store, other) = try (RecordStore.open(folder + "out"), RecordStore.open(folder + "in"))
                let receiver = RecordsReceiver(
                    store: other, options: options, connects: false, keeps: false, report: report)
                let receiving = Task { try await receiver.run() }
                let hello = RecordsMessage.Hello(
                    lowestVersion: 7, highestVersion: 9, store: store.id, epoch: store.epoch, largestRecord: 1)
                for message in [[9], RecordsMessage.hello(hello).encoded, [3, 0, 0, 0]] {
                    let link = try await options.open("sender").connect(timeout: .unreached)
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    _ = try await channel.send(message)
                    var messages = channel.messages.makeAsyncIterator()
                    while let _ = try? await messages.next() {}
                }
                try await store.append([1], to: "receiver")
                try await sender(store, options).run([])
                try await receiving.value
                #expect(try await other.undone() == 0)
                #expect(try await store.waiting().map(\.committedThrough) == [1])
                await store.close()
                await other.close()
            }
        }

        @Test func aSilentConnectionIsClosed() async throws {
            try await inFolder { folder in
                let (near, far) = try await SocketPair.open(folder + "s")
                let receiver = Receiver(
                    destination: try FolderDestination(folder + "files", overwrites: false), report: report,
                    silence: .seconds(600), greeting: .milliseconds(50))
                let channel = try TransferChannel(over: far, framing: LengthPrefixFraming(), chunkSize: nil)
                let isGreeted = Journal()
                await #expect(throws: Receiver.Silence.self) {
                    try await receiver.run(channel, onGreeting: { _ in isGreeted.add("greeted") })
                }
                #expect(isGreeted.all.isEmpty)
                near.close()
            }
        }

        /// A supervisor starts it anew, which opens the store anew.
        @Test(arguments: [true, false]) func aReceiverEndsWithItsStore(keeps: Bool) async throws {
            struct Trouble: Error {}
            try await inFolder { folder in
                let options = try TransferOptions.parse(["--transport", "unix:\(folder)s"])
                let store = try RecordStore.open(folder + "in")
                let receiver = RecordsReceiver(
                    store: store, options: options, connects: false, keeps: keeps, report: report)
                let receiving = Task { try await receiver.run() }
                // One that says nothing is no reason to stay.
                let link = try await options.open("sender").connect(timeout: .unreached)
                store.committer.submit({ _, _ in throw Trouble() }, finish: { _ in })
                let error = await #expect(throws: FerryError.self) { try await receiving.value }
                #expect(error?.code == .storeFailed)
                link.close()
                await store.close()
            }
        }
    }
#endif
