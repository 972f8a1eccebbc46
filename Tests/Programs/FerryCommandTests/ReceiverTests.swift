import Ferry
import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import FerryCommand

/// What a receiver tells a sender that it knows nothing of, about the files that it has.
@Suite(.tags(.program), .timeLimit(.minutes(5))) struct ReceiverTests {
    private static let digits = Array("123456789".utf8)
    private static let whole = TransferContent(count: 9, checksum: 0xE306_9283)
    private static let nothing = TransferContent()

    /// A receiver whose folder has the file `secret` and a part of `half`, and a sender that says what it likes.
    private func meet(
        proves: Bool, _ body: (_ channel: TransferChannel, _ folder: String) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ferry-\(UUID().uuidString)").path
        let destination = try FolderDestination(folder, overwrites: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data(Self.digits).write(to: URL(fileURLWithPath: "\(folder)/secret"))
        try Data(Self.digits[..<4]).write(to: URL(fileURLWithPath: "\(folder)/.half.ferry-part"))
        let (near, far) = MemoryLink.makePair(maximumChunkSize: 200)
        let report = TransferReport(verb: "Received", isJSON: false, isQuiet: true)
        let receiver = Receiver(destination: destination, report: report, silence: .seconds(60))
        let here = try TransferChannel(over: near, framing: LengthPrefixFraming(), chunkSize: nil)
        let there = try TransferChannel(over: far, framing: LengthPrefixFraming(), chunkSize: nil)
        // Nothing crosses the link by itself.
        let carrier = Task { await repeatedly(every: .milliseconds(1)) { while near.deliver() || far.deliver() {} } }
        defer { carrier.cancel() }
        async let end = receiver.run(here)
        try await there.send(.hello(version: 1, proves: proves))
        let welcome = try await there.next()
        #expect(welcome == .welcome(version: 1))
        try await body(there, folder)
        try await there.send(.goodbye)
        let isComplete = try await end
        #expect(isComplete)
        there.close()
        here.close()
    }

    private func ask(_ channel: TransferChannel, _ message: TransferMessage) async throws -> TransferMessage? {
        try await channel.send(message)
        return try await channel.next()
    }

    private func item(_ name: String, size: UInt64?) -> TransferMessage {
        .item(TransferItem(kind: .file, size: size, name: name))
    }

    private func isRefused(_ message: TransferMessage?) -> Bool { if case .refused = message { true } else { false } }

    @Test func aFileIsToldToWhoHasIt() async throws {
        try await meet(proves: true) { (channel, _) async throws in
            #expect(try await ask(channel, item("secret", size: 9)) == .prove(count: 9))
            #expect(try await ask(channel, .end(Self.whole)) == .have(Self.whole, isWhole: true))
            #expect(try await ask(channel, .end(Self.whole)) == .done)
        }
    }

    /// All wrong proofs have one answer, which does not help with a second try.
    @Test(arguments: [(9, 9, 0), (8, 8, 1), (UInt64.max - 1, 3, 4)] as [(UInt64, UInt64, UInt32)])
    func aFileIsNotToldToWhoGuesses(_ size: UInt64, _ count: UInt64, _ checksum: UInt32) async throws {
        try await meet(proves: true) { channel, _ in
            #expect(try await ask(channel, item("secret", size: size)) == .prove(count: size))
            let answer = try await ask(channel, .end(TransferContent(count: count, checksum: checksum)))
            #expect(answer == .refused(FolderDestination.isTaken.description))
        }
    }

    @Test(arguments: [true, false]) func aFileIsComparedForWhoCannotProve(isSame: Bool) async throws {
        try await meet(proves: false) { channel, folder in
            #expect(try await ask(channel, item("secret", size: 9)) == .have(Self.nothing, isWhole: false))
            try await channel.send(.go(offset: 0))
            let bytes = isSame ? Self.digits : Self.digits.reversed()
            try await channel.send(.data(bytes[...]))
            var content = TransferContent()
            content.add(bytes[...])
            let answer = try await ask(channel, .end(content))
            #expect(isSame ? answer == .done : isRefused(answer))
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/secret")) == Data(Self.digits))
        }
    }

    @Test func aDamagedFileLeavesNothing() async throws {
        try await meet(proves: true) { channel, folder in
            #expect(try await ask(channel, item("new", size: 9)) == .have(Self.nothing, isWhole: false))
            try await channel.send(.go(offset: 0))
            try await channel.send(.data(Self.digits[...]))
            #expect(try await isRefused(ask(channel, .end(TransferContent(count: 9, checksum: 1)))))
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder).sorted() == [".half.ferry-part", "secret"])
        }
    }

    @Test func aPartIsToldToWhoHasItsBytes() async throws {
        var half = TransferContent()
        half.add(Self.digits[..<4])
        try await meet(proves: true) { channel, folder in
            #expect(try await ask(channel, item("half", size: 9)) == .prove(count: 4))
            #expect(try await ask(channel, .end(half)) == .have(half, isWhole: false))
            try await channel.send(.go(offset: 4))
            try await channel.send(.data(Self.digits[4...]))
            #expect(try await ask(channel, .end(Self.whole)) == .done)
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/half")) == Data(Self.digits))
        }
    }

    /// Of another file's part, of one that is longer than the item, and to a sender that cannot prove.
    @Test(arguments: [(true, 9), (true, 3), (false, 9)] as [(Bool, UInt64)])
    func aPartIsNotToldToOthers(proves: Bool, size: UInt64) async throws {
        try await meet(proves: proves) { channel, _ in
            var answer = try await ask(channel, item("half", size: size))
            if proves && size == 9 {
                #expect(answer == .prove(count: 4))
                answer = try await ask(channel, .end(TransferContent(count: 4, checksum: 7)))
            }
            #expect(answer == .have(Self.nothing, isWhole: false))
            answer = try await ask(channel, .giveUp("no"))
            #expect(isRefused(answer))
        }
    }
}
