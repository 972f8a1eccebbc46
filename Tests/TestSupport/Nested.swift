/// As deep as the message is.
package indirect enum Nested: Codable, Equatable, Sendable {
    case list([Nested])

    package init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        var items: [Nested] = []
        while !container.isAtEnd { items.append(try container.decode(Nested.self)) }
        self = .list(items)
    }

    package func encode(to encoder: any Encoder) throws {
        guard case .list(let items) = self else { return }
        var container = encoder.unkeyedContainer()
        for item in items { try container.encode(item) }
    }
}
