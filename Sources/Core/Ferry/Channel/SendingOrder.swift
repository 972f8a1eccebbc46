import DequeModule

/// The order in which messages were sent, as long as one of them is still being encoded: those behind it wait.
///
/// Empty most of the time. A place belongs to the call that reserved it until its payload comes or it is forfeited.
struct SendingOrder: Sendable {
    private enum Place {
        /// The payload is still being made.
        case reserved(MessageID)
        case ready(PlacedMessage)
        /// It was forfeited or taken back, and is passed over.
        case free
    }

    private var places: Deque<Place> = []

    var isEmpty: Bool { places.isEmpty }

    mutating func reserve(_ id: MessageID) { places.append(.reserved(id)) }

    /// Whether a message has a place and is still being encoded.
    func hasPlace(_ id: MessageID) -> Bool { index(ofReserved: id) != nil }

    /// Puts a message at its place, or at the end.
    mutating func put(_ message: PlacedMessage) {
        guard let index = index(ofReserved: message.id) else { return places.append(.ready(message)) }
        places[index] = .ready(message)
    }

    /// Gives up the place of a message that is still being encoded, if it has one.
    mutating func forfeit(_ id: MessageID) {
        if let index = index(ofReserved: id) { places[index] = .free }
    }

    /// Takes a message out that waits behind others, if it does.
    mutating func takeBack(_ id: MessageID) -> PlacedMessage? {
        for index in places.indices {
            guard case .ready(let message) = places[index], message.id == id else { continue }
            places[index] = .free
            return message
        }
        return nil
    }

    /// The next message, when none before it is still being encoded.
    mutating func popNext() -> PlacedMessage? {
        while let first = places.first {
            switch first {
            case .reserved: return nil
            case .free: places.removeFirst()
            case .ready(let message):
                places.removeFirst()
                return message
            }
        }
        return nil
    }

    /// Takes out all messages that wait. The places of those that are still being encoded go too.
    mutating func removeAll() -> [PlacedMessage] {
        defer { places = [] }
        return places.compactMap { if case .ready(let message) = $0 { message } else { nil } }
    }

    private func index(ofReserved id: MessageID) -> Int? {
        places.firstIndex { if case .reserved(id) = $0 { true } else { false } }
    }
}
