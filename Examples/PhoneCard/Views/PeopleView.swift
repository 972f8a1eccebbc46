import Ferry
import FerryBluetooth
import PhoneCardLogic
import SwiftUI

/// Everybody nearby, with what can be done next.
struct PeopleView: View {
    let card: ContactCard
    let adapter: any BluetoothAdapter
    let stop: @MainActor () -> Void
    @State private var exchange: CardExchange?
    @State private var people: [Person] = []
    @State private var problem: String?

    var body: some View {
        List {
            if let problem { Text(problem) }
            if people.isEmpty { Text("Looking for others. Both phones must have this page open.") }
            ForEach(people) { person in
                PersonRow(person: person) {
                    exchange?.accept(person.id)
                } decline: {
                    exchange?.decline(person.id)
                }
            }
            Button("Stop") { stop() }
        }
        .task { await run() }
    }

    /// Ends with the page: SwiftUI cancels it.
    private func run() async {
        let (changes, change) = AsyncStream<[Person]>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let exchange = CardExchange(adapter: adapter, card: card) { people in change.yield(people) }
        self.exchange = exchange
        async let ended = Self.outcome(of: exchange, change)
        for await people in changes { self.people = people }
        problem = await ended
    }

    /// Why it ended, for the person; `nil` when the page was left.
    private nonisolated static func outcome(
        of exchange: CardExchange, _ change: AsyncStream<[Person]>.Continuation
    ) async -> String? {
        defer { change.finish() }
        do throws(FerryError) { try await exchange.run() } catch { return error.message }
        return nil
    }
}

/// One person.
struct PersonRow: View {
    let person: Person
    let accept: @MainActor () -> Void
    let decline: @MainActor () -> Void

    var body: some View {
        VStack {
            Text(person.name)
            switch person.stage {
            case .comparing(let theyAgreed):
                Text(person.code)
                Text(
                    theyAgreed
                        ? "\(person.name) wants to exchange cards. Does the other phone show this number?"
                        : "Does the other phone show this number?")
                Button("Yes, give my card") { accept() }
                Button("No") { decline() }
            case .waiting:
                Text(person.code)
                Text("Waiting for \(person.name). Your card has not left yet.")
                Button("Cancel") { decline() }
            case .exchanging: Text("Exchanging")
            case .done(let card, let isDelivered):
                if !isDelivered { Text("The connection was lost: it is not known whether your card has arrived.") }
                SaveButton(card: card)
            case .declined(by: .me): Text("You declined.")
            case .declined(by: .them): Text("\(person.name) declined.")
            case .failed(let reason): Text(reason)
            }
        }
    }
}
