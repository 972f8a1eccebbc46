import Ferry
import FerryTransports

/// What the three commands do, apart from their arguments.
struct Roles: Sendable {
    var transport = NamedTransport.loopback
    var radio = RadioSettings()
    var recipe = Recipe()
    var timeout = Duration.seconds(30)
    var showsChunks = false
    var console: Console
    var time: any TimeSource = SystemTime()

    private var report: Report { Report(console: console) }

    private func party(_ role: String, _ stopwatch: Stopwatch = Stopwatch()) -> Party {
        Party(
            role: role, recipe: recipe, timeout: timeout, console: console, showsChunks: showsChunks,
            time: time, stopwatch: stopwatch)
    }

    /// Server and client in one process: the card goes from one to the other.
    ///
    /// - Parameter path: where the client saves it.
    func exchange(_ card: Card, savingTo path: String?) async throws {
        let makeTransport = try radio.open(transport)
        report.card("Card to send", card)
        report.fact("Transport", radio.title(transport))
        report.recipe(recipe)
        console.line()

        let listener = try await makeTransport("server").listen()
        defer { listener.close() }
        let stopwatch = Stopwatch()
        let (delivery, received) = try await withThrowingTaskGroup { group in
            group.addTask {
                // Waits as long as the client looks for it, who has the deadline.
                var links = listener.links.makeAsyncIterator()
                guard let link = await links.next() else { throw CardError("The server stopped listening.") }
                return Outcome.delivered(try await party("server", stopwatch).handOver(card, over: link))
            }
            group.addTask {
                let link = try await makeTransport("client").connect(timeout: timeout)
                return .received(try await party("client", stopwatch).receive(over: link))
            }
            return try await Self.both(&group)
        }
        console.line()
        report.delivery(delivery)
        report.card("Card that arrived", received)
        guard received == card else { throw CardError("The card that arrived is not the card that was sent.") }
        console.line("The card that arrived equals the card that was sent.")
        try save(received, to: path)
    }

    private enum Outcome: Sendable {
        case delivered(Party.Delivery)
        case received(Card)
    }

    /// What the two sides have to tell; the first failure ends the other side too.
    private static func both(
        _ group: inout ThrowingTaskGroup<Outcome, any Error>
    ) async throws -> (Party.Delivery, Card) {
        defer { group.cancelAll() }
        switch (try await group.next(), try await group.next()) {
        case (.delivered(let delivery), .received(let card)), (.received(let card), .delivered(let delivery)):
            return (delivery, card)
        default: throw CardError("One side of the exchange has nothing to tell.")
        }
    }

    /// The server's role alone: hands the card to whoever comes, until nobody has come for the timeout.
    ///
    /// - Parameter path: where to save the card that a visitor sends back, the latest in place of earlier ones; nil not
    ///   to wait for one.
    func serve(_ card: Card, over transport: any Transport, savingTo path: String?) async throws {
        report.card("Card to send", card)
        report.recipe(recipe)
        let listener = try await transport.listen()
        defer { listener.close() }
        console.line("Waiting for visitors until none has come for \(timeout.forPeople).")
        console.line()
        let visits = try await withThrowingTaskGroup(of: Bool.self) { group in
            var visitors = 0
            while let link = try await nextVisitor(listener) {
                visitors += 1
                group.addTask { [visitors] in
                    await visit(visitors, card, over: link, savingTo: path)
                }
            }
            return try await group.reduce(into: (served: 0, failed: 0)) { counts, wasServed in
                if wasServed { counts.served += 1 } else { counts.failed += 1 }
            }
        }
        console.line("\(visits.served) visitor\(visits.served == 1 ? "" : "s") served, \(visits.failed) failed.")
        guard visits.served > 0 else {
            throw CardError(
                "No visitor took the card within \(timeout.forPeople). Start `business-card receive` on the other "
                    + "side, or wait longer with --timeout.")
        }
    }

    private func nextVisitor(_ listener: LinkListener) async throws -> (any Link)? {
        try await time.race(until: time.now + timeout) {
            var links = listener.links.makeAsyncIterator()
            return await links.next()
        } ?? nil
    }

    /// One visitor's failure is told and the others go on.
    private func visit(_ number: Int, _ card: Card, over link: any Link, savingTo path: String?) async -> Bool {
        do {
            var party = party("server")
            party.sendingTitle = "Sending to visitor \(number)"
            let delivery = try await party.handOver(card, over: link, expectsReply: path != nil)
            console.line("Visitor \(number) took the card.")
            report.delivery(delivery)
            if let reply = delivery.reply {
                report.card("Card from visitor \(number)", reply)
                try save(reply, to: path)
            }
            return true
        } catch {
            console.line("Visitor \(number) did not get the card: \(explanation(of: error))")
            return false
        }
    }

    /// The client's role alone: finds a server and takes its card.
    ///
    /// - Parameter reply: a card to send back.
    func receive(over transport: any Transport, reply: Card?, savingTo path: String?) async throws {
        report.recipe(recipe)
        console.line("Looking for a server for at most \(timeout.forPeople).")
        console.line()
        let link = try await transport.connect(timeout: timeout)
        let received = try await party("client").receive(over: link, reply: reply)
        report.card("Card that arrived", received)
        if let reply { report.card("Card sent back", reply) }
        try save(received, to: path)
    }

    private func save(_ card: Card, to path: String?) throws {
        guard let path else { return }
        try CardFile.save(card, to: path)
        report.saved(path)
    }
}

/// What went wrong, in the words of the layer that noticed and of those below it.
func explanation(of error: any Error) -> String {
    guard let error = error as? FerryError else { return "\(error)" }
    guard let cause = error.cause else { return error.message }
    return "\(error.message) \(explanation(of: cause))"
}
