import FerryLoopback
import PhoneCardLogic

// Two phones in one room. Each person agrees as soon as the other is met; a script stops the program that takes too long.
let radio = LoopbackRadio()
let cards = [
    ContactCard(givenName: "Ada", email: "ada@example.org"), ContactCard(givenName: "Ben", phone: "+1 202 555 0100"),
]
let phones = cards.enumerated().map { index, card in
    CardExchange(adapter: radio.makeAdapter(name: card.givenName), card: card, id: UInt64(index + 3) << 33) { _ in }
}
let running = phones.map { phone in Task { try await phone.run() } }

/// The card that a phone has, once the other phone has confirmed its own.
func received(by phone: CardExchange) -> ContactCard? {
    guard let person = phone.people.first else { return nil }
    if case .comparing = person.stage { phone.accept(person.id) }
    guard case .done(let card, isDelivered: true) = person.stage else { return nil }
    return card
}

while phones.map(received) != [cards[1], cards[0]] { try await Task.sleep(for: .milliseconds(5)) }
print("\(cards[0].givenName) and \(cards[1].givenName) have each other's card")
for task in running { task.cancel() }
for task in running { try await task.value }
