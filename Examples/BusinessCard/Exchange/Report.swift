import Ferry

/// What is printed about an exchange: titles in one column, facts in the next.
struct Report {
    var console: Console

    private static let column = 18

    func fact(_ title: String, _ text: String) {
        console.line(title.padded(to: Self.column) + text)
    }

    /// A card under a heading.
    func card(_ heading: String, _ card: Card) {
        console.line(heading)
        let rows = [
            ("Name", [card.firstName, card.lastName].filter { !$0.isEmpty }.joined(separator: " ")),
            ("Organization", card.organization), ("Location", card.location), ("Contact", card.contact),
        ]
        for (title, text) in rows where !text.isEmpty { fact("  " + title, text.printable) }
        console.line()
    }

    /// What both sides have agreed on.
    func recipe(_ recipe: Recipe) {
        fact("Codec", recipe.codec.title + (recipe.compresses ? ", compressed where that gains" : ""))
        fact("Framing", recipe.framing.title)
        let bound = recipe.framing.chunkBound(recipe.chunkSize)
        fact("Chunks", bound.map { "at most \($0) bytes" } ?? "as large as the link takes")
    }

    /// How a card went out.
    func delivery(_ delivery: Party.Delivery) {
        let statistics = delivery.statistics
        let gain =
            delivery.messageBytes < delivery.encodedBytes ? ", compressed from \(delivery.encodedBytes)" : ""
        fact("Message", "\(delivery.messageBytes) bytes\(gain)")
        let sizes = delivery.chunks.map { "\($0.count) x \($0.size)" }.joined(separator: ", ")
        fact("Chunks sent", "\(statistics.chunksSent) (\(sizes) bytes; \(statistics.bytesSent) in all)")
        let times = statistics.waitsForReady == 1 ? "time" : "times"
        let waiting = statistics.waitsForReady > 0 ? ", \(statistics.timeWaiting.forPeople) in all" : ""
        fact("Waited for ready", "\(statistics.waitsForReady) \(times)\(waiting)")
        fact("Time", delivery.duration.forPeople)
        console.line()
    }

    /// Where a card was saved.
    func saved(_ path: String) { fact("Saved", path.printable) }
}
