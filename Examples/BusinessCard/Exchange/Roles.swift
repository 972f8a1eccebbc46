import Ferry
import FerryBluetooth
import FerryTransports

/// What the three commands do, apart from their arguments.
struct Roles: Sendable {
    var transport = NamedTransport.loopback
    var radio = RadioSettings()
    var recipe = Recipe()
    var timeout = Duration.seconds(30)
    /// The most visitors that a server has at once.
    var places = 64
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
                guard let link = await links.next() else {
                    throw CardError(listener.interruption?.message ?? "The server stopped listening.")
                }
                return Outcome.delivered(try await party("server", stopwatch).handOver(card, over: link))
            }
            group.addTask {
                let link = try await makeTransport("client").connect(timeout: timeout)
                return .received(try await party("client", stopwatch).receive(over: link).card)
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

    /// The server's role alone: hands the card to each client, until none has come for the timeout.
    ///
    /// - Parameter path: where to save the card that a visitor sends back, the latest in place of earlier ones; nil not
    ///   to wait for one.
    func serve(_ card: Card, over transport: any Transport, savingTo path: String?) async throws {
        report.card("Card to send", card)
        report.recipe(recipe)
        let listener = try await transport.listen()
        defer { listener.close() }
        listener.onInterruption { [console] in console.line($0?.message ?? "Visitors can come again.") }
        console.line("Waiting for visitors until none has come for \(timeout.forPeople).")
        console.line()
        let visits = Visits(time: time, patience: timeout) { listener.close() }
        visits.wait()
        // When all places are taken, the visitor that has been there longest gives way.
        let acceptor = Acceptor(AcceptingPlan.Configuration(places: places), time: time)
        await acceptor.serve(listener.links) { comer in
            visits.begin()
            visits.end(wasServed: await visit(comer, card, savingTo: path))
        }
        try Task.checkCancellation()
        let (served, failed) = visits.counts
        console.line("\(served) visitor\(served == 1 ? "" : "s") served, \(failed) failed.")
        guard visits.isOver else {
            throw CardError(
                listener.interruption?.message
                    ?? "The transport has stopped listening. Is the adapter still there, and the service that runs it?")
        }
        guard failed == 0 else {
            throw CardError("\(failed) visit\(failed == 1 ? "" : "s") failed; the reasons are above.")
        }
        guard served > 0 else {
            if let reason = listener.interruption { throw CardError("No visitor could come. \(reason.message)") }
            throw CardError(
                "No visitor took the card within \(timeout.forPeople). Start `business-card receive` on the other "
                    + "side, or wait longer with --timeout.")
        }
    }

    /// One visitor's failure is told and the others go on.
    private func visit(_ comer: Acceptor.Comer, _ card: Card, savingTo path: String?) async -> Bool {
        let (number, link) = (comer.number, comer.link)
        do {
            do { try comer.greeted(as: link.peer) } catch {
                link.close()
                throw error
            }
            var party = party("server")
            party.sendingTitle = "Sending to visitor \(number)"
            let delivery = try await party.handOver(card, over: link, expectsReply: path != nil)
            // Only an acknowledgement says that the visitor has it.
            console.line(
                recipe.framing.acknowledges
                    ? "Visitor \(number) acknowledged the card."
                    : "Visitor \(number) was sent the card; with --framing \(recipe.framing) nothing confirms that it arrived."
            )
            report.delivery(delivery)
            if path != nil, delivery.reply == nil { console.line("Visitor \(number) sent no card back.") }
            if let reply = delivery.reply {
                report.card("Card from visitor \(number)", reply)
                do { try save(reply, to: path) } catch {
                    console.line("The card of visitor \(number) is not saved: \(explanation(of: error))")
                    return false
                }
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
        let arrival = try await party("client").receive(over: link, reply: reply)
        report.card("Card that arrived", arrival.card)
        if let reply, arrival.replyFailure == nil { report.card("Card sent back", reply) }
        try save(arrival.card, to: path)
        if let failure = arrival.replyFailure {
            throw CardError("The card has arrived; yours could not be sent back: \(explanation(of: failure))")
        }
    }

    private func save(_ card: Card, to path: String?) throws {
        guard let path else { return }
        try CardFile.save(card, to: path)
        report.saved(path)
    }
}

/// What went wrong, in the words of the layer that noticed and of those below it.
func explanation(of error: any Error) -> String {
    if let error = error as? BluetoothError { return error.message }
    guard let error = error as? FerryError else { return "\(error)" }
    // Other causes are for programs: dumps of the system's.
    guard let cause = error.cause, cause is FerryError || cause is BluetoothError || cause is CardError else {
        return error.message
    }
    let below = explanation(of: cause)
    return error.message.contains(below) ? error.message : "\(error.message) \(below)"
}
