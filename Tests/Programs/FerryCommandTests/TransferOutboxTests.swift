import Ferry
import Foundation
import TestSupport
import Testing

@testable import FerryCommand

/// The sending side as a value, and what it takes its items from.
@Suite(.tags(.program)) struct TransferOutboxTests {
    private static let item = TransferItem(kind: .file, size: 9, name: "a")
    private static let folder = TransferItem(kind: .folder, name: "d")
    private static let whole = TransferContent(count: 9, checksum: 0xE306_9283)
    private static let part = TransferContent(count: 4, checksum: 1)

    private func named(_ item: TransferItem = item) throws -> TransferOutbox {
        var outbox = TransferOutbox()
        #expect(outbox.greet() == .hello(version: 1, proves: true))
        #expect(try outbox.receive(.welcome(version: 1)) == .start)
        #expect(outbox.name(item) == .item(item))
        return outbox
    }

    @Test func anItemToItsEnd() throws {
        var outbox = try named()
        #expect(
            try outbox.receive(.have(TransferContent(), isWhole: false)) == .compare(TransferContent(), isWhole: false))
        #expect(outbox.decide(.send(from: 0), TransferContent()) == .go(offset: 0))
        #expect(outbox.finish(Self.whole) == .end(Self.whole))
        #expect(try outbox.receive(.done) == .done(wasThere: false))
        #expect(outbox.leave() == .goodbye)
    }

    @Test func whatIsThereIsProvedAndConfirmed() throws {
        var outbox = try named()
        #expect(try outbox.receive(.prove(count: 9)) == .prove(count: 9))
        #expect(outbox.prove(Self.whole) == .end(Self.whole))
        #expect(try outbox.receive(.have(Self.whole, isWhole: true)) == .compare(Self.whole, isWhole: true))
        #expect(outbox.decide(.confirm, Self.whole) == .end(Self.whole))
        #expect(try outbox.receive(.done) == .done(wasThere: true))
    }

    @Test func aRefusalStopsWhatIsBeingSent() throws {
        var outbox = try named()
        _ = try outbox.receive(.have(TransferContent(), isWhole: false))
        _ = outbox.decide(.send(from: 0), TransferContent())
        #expect(try outbox.receive(.refused("full")) == .stop("full"))
        #expect(outbox.giveUp("no") == .giveUp("no"))
        // The receiver passes over what comes of a refused item, and says nothing.
        #expect(throws: FerryError.self) { try outbox.receive(.refused("again")) }
        #expect(outbox.name(Self.folder) == .item(Self.folder))
        #expect(try outbox.receive(.done) == .done(wasThere: false))
    }

    /// "Done" before the end of an item is no answer to it, and neither is what answers another kind of item.
    @Test func whatIsOutOfOrderIsRefused() throws {
        var sending = try named()
        _ = try sending.receive(.have(TransferContent(), isWhole: false))
        _ = sending.decide(.send(from: 0), TransferContent())
        var proved = try named()
        _ = try proved.receive(.prove(count: 9))
        _ = proved.prove(Self.whole)
        var givingUp = sending
        _ = givingUp.giveUp("changed")
        var greeting = TransferOutbox()
        _ = greeting.greet()
        let states: [(String, TransferOutbox, Set<Int>)] = [
            ("new", TransferOutbox(), []), ("greeting", greeting, [0]), ("named", try named(), [1, 2, 4]),
            ("proved", proved, [2, 4]), ("folder", try named(Self.folder), [3, 4]), ("sending", sending, [4]),
            ("giving up", givingUp, [4]),
        ]
        let all: [TransferMessage] = [
            .welcome(version: 1), .prove(count: 4), .have(Self.part, isWhole: false), .done, .refused(""),
            .hello(version: 1), .item(Self.item), .go(offset: 0), .data([]), .end(Self.whole), .giveUp(""), .goodbye,
        ]
        for (name, state, allowed) in states {
            for (index, message) in all.enumerated() {
                var outbox = state
                let isTaken = (try? outbox.receive(message)) != nil
                #expect(isTaken == allowed.contains(index), "\(name): \(message)")
            }
        }
    }

    // MARK: Sources

    private func inFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ferry-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path)
    }

    @Test func aFileThatChangesIsNoticedWhateverItsTimesSay() throws {
        try inFolder { folder in
            let path = "\(folder)/a"
            try "123456789".write(toFile: path, atomically: false, encoding: .utf8)
            let source = Source(item: Self.item, place: .typed(path))
            let opened = try source.open()
            #expect(try opened.isStill(Self.whole))
            // As a program does that writes at once after it was opened, and sets the time back.
            let writer = try #require(FileHandle(forWritingAtPath: path))
            try writer.write(contentsOf: Data("x".utf8))
            try writer.close()
            var times = (timespec(), timespec(tv_sec: Int(opened.item.modified), tv_nsec: 0))
            _ = withUnsafePointer(to: &times) {
                $0.withMemoryRebound(to: timespec.self, capacity: 2) { utimensat(AT_FDCWD, path, $0, 0) }
            }
            #expect(try !opened.isStill(Self.whole))
            // New permissions, another name, and the same bytes again are no change.
            let again = try source.open()
            var content = TransferContent()
            content.add(Array("x23456789".utf8)[...])
            try #require(chmod(path, 0o600) == 0 && link(path, path + "2") == 0)
            #expect(try again.isStill(content))
            #expect(again.item.size == 9)
        }
    }

    @Test func aPipeInThePlaceOfAFileIsNotWaitedFor() throws {
        try inFolder { folder in
            try #require(mkfifo("\(folder)/a", 0o600) == 0)
            for place in [Source.Place.typed("\(folder)/a"), .found("\(folder)/a")] {
                #expect(throws: Refusal.self) { try Source(item: Self.item, place: place).open() }
            }
            try #require(symlink("/etc/passwd", "\(folder)/b") == 0)
            #expect(throws: SystemFile.Failure.self) {
                try Source(item: Self.item, place: .found("\(folder)/b")).open()
            }
        }
    }

    @Test func whatCannotBeSentIsNamed() throws {
        try inFolder { folder in
            for name in ["plain", "back\\slash", "x.ferry-part", "\u{1B}[2J", "50%"] {
                try Data().write(to: URL(fileURLWithPath: folder).appendingPathComponent(name))
            }
            #if !canImport(Darwin)
                // There names are Unicode.
                let bytes = Array("\(folder)/a".utf8CString.dropLast()) + [CChar(bitPattern: 0xFF), 0]
                try #require(creat(bytes, 0o600) >= 0)
            #endif
            try #require(symlink("plain", "\(folder)/link") == 0 && mkfifo("\(folder)/pipe", 0o600) == 0)
            let list = try SourceList([folder], streamName: "stdin", asLines: false)
            let name = URL(fileURLWithPath: folder).lastPathComponent
            var skipped: Set<String> = []
            for source in list.sources {
                #expect(TransferName.parts(source.item.name) != nil, "\(source.item.name)")
                guard case .none(let reason) = source.place else { continue }
                skipped.insert(String(source.item.name.dropFirst(name.count + 1)))
                #expect(reason.hasPrefix("it "))
            }
            var expected: Set = ["back%5Cslash", "x.ferry-part%", "link", "pipe"]
            #if !canImport(Darwin)
                expected.insert("a%FF")
            #endif
            #expect(skipped == expected)
            #expect(list.sources.count == expected.count + 4)
        }
    }

    @Test func namesAreBytes() {
        #expect(TransferName.parts("../\u{301}a") == nil)
        #expect(TransferName.parts("a/\u{301}b")?.count == 2)
        #expect(TransferName.parts("\u{600}.ferry-part") == nil)
        #expect(TransferName.parts("a.FERRY-part") == nil)
        #expect(
            TransferName.parts(Array(repeating: String(repeating: "a", count: 240), count: 18).joined(separator: "/"))
                == nil)
    }
}
