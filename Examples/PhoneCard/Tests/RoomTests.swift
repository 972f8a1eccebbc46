import Ferry
import TestSupport
import Testing

@testable import PhoneCardLogic

/// Conversations as a value: who connects, what is sent when, and what never leaves.
@Suite(.tags(.program)) struct RoomTests {
    static let ada = ContactCard(givenName: "Ada", familyName: "Lovelace", email: "ada@example.org")
    static let ben = ContactCard(givenName: "Ben", organization: "Example, Inc.")
    private static let (large, small) = (UInt64(9) << 40, UInt64(5) << 40)
    private static let peer = PeerIdentity("peer", certainty: .address)

    /// A room that has met the other on link 1, which it made.
    private func met(_ role: Room.Role = .central(peer)) -> Room {
        var room = Room(id: Self.large, card: Self.ada)
        _ = room.take(.opened(1, role), at: .zero)
        let answer = room.take(.received(.hello(Greeting(id: Self.small, name: "Ben")), on: 1), at: .zero)
        #expect(answer.isEmpty)
        #expect(room.people.map(\.id) == [Self.small])
        return room
    }

    @Test func phoneWithTheLargerNumberConnects() {
        var room = Room(id: Self.large, card: Self.ada)
        let effects = room.take(.heard(Self.peer, token: Greeting.token(Self.small)), at: .zero)
        #expect(effects == [.connect(Self.peer)])
        // Once.
        #expect(room.take(.heard(Self.peer, token: Greeting.token(Self.small)), at: .zero).isEmpty)
    }

    @Test func phoneWithTheSmallerNumberWaitsForTheOther() {
        var room = Room(id: Self.small, card: Self.ben)
        #expect(room.take(.heard(Self.peer, token: Greeting.token(Self.large)), at: .zero).isEmpty)
        #expect(room.nextDeadline == Timestamp.zero + Room.politeness)
        var other = room
        #expect(room.take(.woken, at: .zero + Room.politeness) == [.connect(Self.peer)])
        // It does not when the other has come.
        _ = other.take(.opened(1, .peripheral), at: .zero)
        _ = other.take(.received(.hello(Greeting(id: Self.large, name: "Ada")), on: 1), at: .zero)
        #expect(other.take(.woken, at: .zero + Room.politeness).isEmpty)
        #expect(other.nextDeadline == nil)
    }

    @Test func cardLeavesAfterBothConsents() {
        for meFirst in [true, false] {
            var room = met()
            let card = Room.Effect.send(.card(Self.ada), on: 1)
            if meFirst {
                #expect(room.take(.accepted(Self.small), at: .zero) == [.send(.consent, on: 1)])
                #expect(room.people[0].stage == .waiting)
                #expect(room.take(.received(.consent, on: 1), at: .zero) == [card])
            } else {
                #expect(room.take(.received(.consent, on: 1), at: .zero).isEmpty)
                #expect(room.people[0].stage == .comparing(theyAgreed: true))
                #expect(room.take(.accepted(Self.small), at: .zero) == [.send(.consent, on: 1), card])
            }
            #expect(room.take(.received(.card(Self.ben), on: 1), at: .zero) == [.send(.received, on: 1)])
            #expect(room.take(.received(.received, on: 1), at: .zero) == [.close(1)])
            #expect(room.people[0].stage == .done(Self.ben, isDelivered: true))
            _ = room.take(.closed(1), at: .zero)
            #expect(room.people[0].stage == .done(Self.ben, isDelivered: true))
        }
    }

    @Test(arguments: [CardMessage.card(ben), .received, .hello(Greeting(id: 1, name: "Eve"))])
    func messageOutOfTurnEndsTheConversation(_ message: CardMessage) {
        var room = met()
        #expect(room.take(.received(message, on: 1), at: .zero) == [.close(1)])
        guard case .failed = room.people[0].stage else {
            Issue.record("\(room.people[0].stage)")
            return
        }
        // No later consent has an effect.
        #expect(room.take(.accepted(Self.small), at: .zero).isEmpty)
    }

    @Test func cardThatIsNoCardEndsTheConversation() {
        for card in [
            ContactCard(), ContactCard(givenName: "a\u{0}"), ContactCard(givenName: String(repeating: "a", count: 257)),
        ] {
            var room = met()
            _ = room.take(.accepted(Self.small), at: .zero)
            _ = room.take(.received(.consent, on: 1), at: .zero)
            #expect(room.take(.received(.card(card), on: 1), at: .zero) == [.close(1)])
        }
    }

    @Test func eitherSideDeclines() {
        var room = met()
        #expect(room.take(.declined(Self.small), at: .zero) == [.send(.decline, on: 1), .close(1)])
        #expect(room.people[0].stage == .declined(by: .me))
        room = met()
        _ = room.take(.accepted(Self.small), at: .zero)
        #expect(room.take(.received(.decline, on: 1), at: .zero) == [.close(1)])
        #expect(room.people[0].stage == .declined(by: .them))
    }

    /// Both keep the link of the phone with the larger number, whichever hello comes first, and consents are said again.
    @Test func ofTwoLinksBothKeepTheSame() {
        let mine = (1, Room.Role.central(Self.peer))
        let theirs = (2, Room.Role.peripheral)
        for order in [[mine, theirs], [theirs, mine]] {
            var room = Room(id: Self.large, card: Self.ada)
            _ = room.take(.opened(order[0].0, order[0].1), at: .zero)
            _ = room.take(.received(.hello(Greeting(id: Self.small, name: "Ben")), on: order[0].0), at: .zero)
            _ = room.take(.accepted(Self.small), at: .zero)
            _ = room.take(.opened(order[1].0, order[1].1), at: .zero)
            let effects = room.take(.received(.hello(Greeting(id: Self.small, name: "Ben")), on: order[1].0), at: .zero)
            #expect(effects == (order[0].0 == 1 ? [.close(2)] : [.close(2), .send(.consent, on: 1)]))
            _ = room.take(.closed(2), at: .zero)
            #expect(room.people.map(\.stage) == [.waiting])
            #expect(room.take(.received(.consent, on: 1), at: .zero) == [.send(.card(Self.ada), on: 1)])
        }
    }

    @Test func lostPeerIsTriedAgainAndThenLeft() {
        var room = Room(id: Self.large, card: Self.ada)
        _ = room.take(.heard(Self.peer, token: nil), at: .zero)
        var now = Timestamp.zero
        for _ in 1..<Room.attempts {
            #expect(room.take(.failed(Self.peer), at: now).isEmpty)
            now = now + Room.retryPause
            #expect(room.take(.woken, at: now) == [.connect(Self.peer)])
        }
        _ = room.take(.failed(Self.peer), at: now)
        #expect(room.nextDeadline == nil)
    }

    @Test func silentPeerIsLeft() {
        var room = Room(id: Self.large, card: Self.ada)
        _ = room.take(.opened(1, .peripheral), at: .zero)
        #expect(room.take(.woken, at: .zero + Room.greetingTimeout) == [.close(1)])
        #expect(room.nextDeadline == nil)
    }

    @Test func strangersCannotFillTheRoom() {
        var room = Room(id: 1, card: Self.ada)
        for link in 0..<100 {
            _ = room.take(.opened(link, .peripheral), at: .zero)
            _ = room.take(.heard(PeerIdentity("\(link)", certainty: .connection), token: nil), at: .zero)
            _ = room.take(.received(.hello(Greeting(id: UInt64(link) + 2, name: "x")), on: link), at: .zero)
            if link >= 16 { _ = room.take(.closed(link), at: .zero) }
        }
        #expect(room.people.count == Room.maximumLinks)
    }

    @Test func codesAreTheSameForBothAndDifferForOthers() {
        #expect(Greeting.code(3, 4) == Greeting.code(4, 3))
        #expect(Set((0..<1000).map { Greeting.code(77, $0) }).count > 990)
        #expect(Greeting.code(1, 2).count == 7)
        #expect(Greeting.token(localName: Greeting.localName(.max)) == .max)
        #expect(Greeting.token(localName: Greeting.localName(5 << 32)) == 5)
        #expect(Greeting.token(localName: "Ada") == nil)
    }

    @Test func vCardEscapesWhatStructureIsMadeOf() {
        let card = ContactCard(
            givenName: "A;b", familyName: "C,d", organization: "E\\f", phone: "+1 2", email: "a@example.org")
        #expect(
            card.vCard
                == "BEGIN:VCARD\r\nVERSION:3.0\r\nN:C\\,d;A\\;b;;;\r\nFN:A\\;b C\\,d\r\nORG:E\\\\f\r\nTEL:+1 2\r\n"
                + "EMAIL:a@example.org\r\nEND:VCARD\r\n")
    }
}
