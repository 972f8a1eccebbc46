import Ferry
import TestSupport
import Testing

@testable import FerryCommand

/// The receiving side as a value: what it does with each message, and which it refuses.
@Suite(.tags(.program)) struct TransferInboxTests {
    private static let item = TransferItem(kind: .file, size: 9, name: "a")
    private static let whole = TransferContent(count: 9, checksum: 0xE306_9283)
    private static let part: TransferContent = {
        var content = TransferContent()
        content.add(Array("1234".utf8)[...])
        return content
    }()
    private let digits = Array("123456789".utf8)

    /// An inbox that has been told of the item and has answered.
    private func offered(_ content: TransferContent, isWhole: Bool) throws -> TransferInbox {
        var inbox = TransferInbox()
        #expect(try inbox.receive(.hello(version: 1)) == .welcome)
        #expect(try inbox.receive(.item(Self.item)) == .look(Self.item))
        inbox.offer(content, isWhole: isWhole)
        return inbox
    }

    @Test func anItemFromItsBeginning() throws {
        var inbox = try offered(TransferContent(), isWhole: false)
        #expect(try inbox.receive(.go(offset: 0)) == .begin(Self.item, at: 0))
        for cut in digits { #expect(try inbox.receive(.data([cut])) == .write([cut])) }
        #expect(inbox.progress?.count == 9)
        #expect(try inbox.receive(.end(Self.whole)) == .finish(Self.item, Self.whole))
        #expect(try inbox.receive(.goodbye) == .end)
        #expect(inbox.hasEnded)
    }

    /// However much was there, the checksum is of the whole.
    @Test(arguments: 0...9) func anItemFromItsMiddle(_ count: Int) throws {
        var there = TransferContent()
        there.add(digits[..<count])
        var inbox = try offered(there, isWhole: false)
        #expect(try inbox.receive(.go(offset: UInt64(count))) == .begin(Self.item, at: UInt64(count)))
        #expect(try inbox.receive(.data(digits[count...])) == .write(digits[count...]))
        #expect(try inbox.receive(.end(Self.whole)) == .finish(Self.item, Self.whole))
    }

    @Test func anItemAnewAlthoughAPartIsThere() throws {
        var inbox = try offered(Self.part, isWhole: false)
        #expect(try inbox.receive(.go(offset: 0)) == .begin(Self.item, at: 0))
        #expect(try inbox.receive(.data(digits[...])) == .write(digits[...]))
        #expect(try inbox.receive(.end(Self.whole)) == .finish(Self.item, Self.whole))
    }

    @Test func whatIsThereIsNotSent() throws {
        var inbox = try offered(Self.whole, isWhole: true)
        #expect(try inbox.receive(.end(Self.whole)) == .alreadyThere(Self.item, Self.whole))
        #expect(try inbox.receive(.item(Self.item)) == .look(Self.item))
    }

    /// What is there is told to who has shown to have the same.
    @Test(arguments: [true, false]) func whatIsThereIsToldToWhoProvesIt(isWhole: Bool) throws {
        var inbox = TransferInbox()
        _ = try inbox.receive(.hello(version: 1, proves: true))
        #expect(inbox.senderProves)
        _ = try inbox.receive(.item(Self.item))
        inbox.ask(count: 4, isWhole: isWhole)
        // More than was asked for, data, and a beginning are no proof.
        for message in [.end(Self.whole), .data([1]), .go(offset: 0), .item(Self.item)] as [TransferMessage] {
            var other = inbox
            #expect(throws: FerryError.self) { try other.receive(message) }
        }
        var givenUp = inbox
        #expect(try givenUp.receive(.giveUp("no")) == .givenUp(Self.item, "no"))
        #expect(try inbox.receive(.end(Self.part)) == .compare(Self.item, Self.part, isWhole: isWhole))
        #expect(throws: FerryError.self) {
            var other = inbox
            return try other.receive(.go(offset: 0))
        }
        inbox.offer(Self.part, isWhole: isWhole)
        if isWhole {
            #expect(try inbox.receive(.end(Self.part)) == .alreadyThere(Self.item, Self.part))
        } else {
            #expect(try inbox.receive(.go(offset: 4)) == .begin(Self.item, at: 4))
        }
    }

    @Test(arguments: [
        TransferContent(count: 8, checksum: 0xE306_9283), TransferContent(count: 9, checksum: 0xE306_9282),
    ])
    func damageIsNoticed(_ content: TransferContent) throws {
        var inbox = try offered(TransferContent(), isWhole: false)
        _ = try inbox.receive(.go(offset: 0))
        _ = try inbox.receive(.data(digits[...]))
        #expect(try inbox.receive(.end(content)) == .damaged(Self.item))
        #expect(try inbox.receive(.goodbye) == .end)
    }

    @Test func linesCountTheirEnds() throws {
        let lines = TransferItem(kind: .lines, name: "l")
        var inbox = TransferInbox()
        _ = try inbox.receive(.hello(version: 1))
        _ = try inbox.receive(.item(lines))
        inbox.offer(TransferContent(), isWhole: false)
        _ = try inbox.receive(.go(offset: 0))
        _ = try inbox.receive(.data([1]))
        _ = try inbox.receive(.data([]))
        var content = TransferContent()
        content.add([1, 10, 10])
        #expect(try inbox.receive(.end(content)) == .finish(lines, content))
    }

    @Test func whatIsRefusedIsPassedOver() throws {
        var inbox = try offered(TransferContent(), isWhole: false)
        inbox.refuse()
        for message in [.go(offset: 0), .data([1]), .end(Self.whole), .giveUp("")] as [TransferMessage] {
            #expect(try inbox.receive(message) == .passOver)
        }
        #expect(try inbox.receive(.item(Self.item)) == .look(Self.item))
    }

    @Test func givingUpIsTold() throws {
        var inbox = try offered(Self.part, isWhole: false)
        #expect(try inbox.receive(.giveUp("gone")) == .givenUp(Self.item, "gone"))
        #expect(try inbox.receive(.goodbye) == .end)
    }

    @Test func anotherVersionIsRefused() {
        var inbox = TransferInbox()
        let error = #expect(throws: FerryError.self) { try inbox.receive(.hello(version: 2)) }
        #expect(error?.code == .incompatiblePeer)
    }

    /// In each state, every message that has no place there.
    @Test func whatIsOutOfOrderIsRefused() throws {
        let all: [TransferMessage] = [
            .hello(version: 1), .item(Self.item), .go(offset: 0), .data([1]), .end(Self.whole), .giveUp(""), .goodbye,
            .welcome(version: 1), .have(Self.part, isWhole: false), .done, .refused(""), .prove(count: 1),
        ]
        var idle = TransferInbox()
        _ = try idle.receive(.hello(version: 1))
        var looking = idle
        _ = try looking.receive(.item(Self.item))
        var receiving = try offered(TransferContent(), isWhole: false)
        _ = try receiving.receive(.go(offset: 0))
        var ended = idle
        _ = try ended.receive(.goodbye)
        let states: [(String, TransferInbox, Set<Int>)] = [
            ("new", TransferInbox(), [0]), ("idle", idle, [1, 6]), ("looking", looking, []),
            ("offered a part", try offered(Self.part, isWhole: false), [2, 5]),
            ("offered the whole", try offered(Self.whole, isWhole: true), [4, 5]),
            ("receiving", receiving, [3, 4, 5]), ("ended", ended, []),
        ]
        for (name, state, allowed) in states {
            for (index, message) in all.enumerated() {
                var inbox = state
                let isTaken = (try? inbox.receive(message)) != nil
                #expect(isTaken == allowed.contains(index), "\(name): \(message)")
            }
        }
        var inbox = try offered(Self.part, isWhole: false)
        #expect(throws: FerryError.self) { try inbox.receive(.go(offset: 3)) }
    }

    @Test func plansFollowFromWhatIsThere() {
        let (none, part, whole) = (TransferContent(), Self.part, Self.whole)
        let other = TransferContent(count: 4, checksum: 1)
        #expect(TransferPlan(there: none, isWhole: false, own: none, size: 9) == .send(from: 0))
        #expect(TransferPlan(there: part, isWhole: false, own: part, size: 9) == .send(from: 4))
        #expect(TransferPlan(there: part, isWhole: false, own: other, size: 9) == .send(from: 0))
        #expect(TransferPlan(there: part, isWhole: false, own: nil, size: 3) == .send(from: 0))
        #expect(TransferPlan(there: whole, isWhole: false, own: whole, size: 9) == .send(from: 9))
        #expect(TransferPlan(there: whole, isWhole: true, own: whole, size: 9) == .confirm)
        #expect(TransferPlan(there: whole, isWhole: true, own: other, size: 9) == .conflict)
        #expect(TransferPlan(there: part, isWhole: true, own: part, size: 9) == .conflict)
        #expect(TransferPlan(there: whole, isWhole: true, own: nil, size: 3) == .conflict)
    }
}
