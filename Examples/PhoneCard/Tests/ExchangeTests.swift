import CoreBluetoothRig
import Ferry
import FerryBluetooth
import FerryLoopback
import PhoneCardLogic
import TestSupport
import Testing

/// Phones in one room over the virtual radio: by its adapters, and by CoreBluetooth as an iPhone has it.
@Suite(.tags(.program, .channel), .timeLimit(.minutes(2))) struct ExchangeTests {
    private static let ada = ContactCard(givenName: "Ada", email: "ada@example.org")
    private static let ben = ContactCard(givenName: "Ben", phone: "+1 202 555 0100")
    private static let cora = ContactCard(givenName: "Cora")

    /// A phone that runs in a task of its own.
    private final class Phone: Sendable {
        let exchange: CardExchange
        private let task: Task<Void, any Error>

        init(_ card: ContactCard, _ id: UInt64, on adapter: any BluetoothAdapter) {
            let exchange = CardExchange(adapter: adapter, card: card, id: id) { _ in }
            self.exchange = exchange
            task = Task { try await exchange.run() }
        }

        func person(_ name: String) -> PhoneCardLogic.Person? { exchange.people.first { $0.name == name } }

        /// Waits until the person is met.
        func meet(_ name: String) async throws -> PhoneCardLogic.Person {
            try await until("\(name) is met: \(exchange.people)") { person(name) != nil }
            guard let person = person(name) else { throw NotYet(name) }
            return person
        }

        func stop() async throws {
            task.cancel()
            try await task.value
        }
    }

    private func phones(overCoreBluetooth isOver: Bool, _ cards: [ContactCard]) -> [Phone] {
        let radio = LoopbackRadio()
        return cards.enumerated().map { index, card in
            let adapter = radio.makeAdapter(name: card.givenName)
            return Phone(card, UInt64(index + 3) << 33, on: isOver ? overCoreBluetooth(adapter) : adapter)
        }
    }

    @Test(arguments: [false, true]) func twoPhonesExchangeCardsByTheSameCode(_ isOverCoreBluetooth: Bool) async throws {
        let phones = phones(overCoreBluetooth: isOverCoreBluetooth, [Self.ada, Self.ben])
        let (ben, ada) = (try await phones[0].meet("Ben"), try await phones[1].meet("Ada"))
        #expect(ada.code == ben.code)
        phones[0].exchange.accept(ben.id)
        try await until("Ben's phone knows that Ada agrees") {
            phones[1].person("Ada")?.stage == .comparing(theyAgreed: true)
        }
        // Ada's card is still hers.
        #expect(phones[0].person("Ben")?.stage == .waiting)
        phones[1].exchange.accept(ada.id)
        try await until("both have a card: \(phones.map(\.exchange.people))") {
            phones[0].person("Ben")?.stage == .done(Self.ben, isDelivered: true)
                && phones[1].person("Ada")?.stage == .done(Self.ada, isDelivered: true)
        }
        for phone in phones { try await phone.stop() }
    }

    @Test func ofThreePhonesTheChosenTwoExchange() async throws {
        let phones = phones(overCoreBluetooth: false, [Self.ada, Self.ben, Self.cora])
        let people = try await [
            phones[0].meet("Ben"), phones[0].meet("Cora"), phones[1].meet("Ada"), phones[1].meet("Cora"),
            phones[2].meet("Ada"), phones[2].meet("Ben"),
        ]
        #expect(Set(people.map(\.code)).count == 3)
        phones[0].exchange.accept(people[0].id)
        phones[1].exchange.accept(people[2].id)
        phones[2].exchange.decline(people[4].id)
        try await until("Ada has Ben's card and hears that Cora declines: \(phones[0].exchange.people)") {
            phones[0].person("Ben")?.stage == .done(Self.ben, isDelivered: true)
                && phones[0].person("Cora")?.stage == .declined(by: .them)
        }
        #expect(phones[2].person("Ben")?.stage == .comparing(theyAgreed: false))
        for phone in phones { try await phone.stop() }
    }
}
