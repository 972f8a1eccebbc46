import Ferry
import Synchronization

/// The peers that a receiver has at once. When all places are taken, the peer that has been silent longest gives its place up;
/// a peer that has said who it is keeps it.
final class ReceiverPlaces: Sendable {
    private struct Place {
        let close: @Sendable () -> Void
        var isKnown = false
    }

    private struct State {
        var places: [Int: Place] = [:]
        var last = 0
    }

    private let state = Mutex(State())
    private let count: Int

    init(_ count: Int) { self.count = count }

    /// Takes a place.
    ///
    /// - Parameter close: ends the peer's link, where another needs the place before this one says who it is.
    /// - Returns: its number; `nil` when peers that are known have all places.
    func enter(_ close: @escaping @Sendable () -> Void) -> Int? {
        let (number, silent) = state.withLock { state -> (Int?, Place?) in
            var silent: Place?
            if state.places.count >= count {
                let oldest = state.places.filter { !$0.value.isKnown }.keys.min()
                guard let oldest else { return (nil, nil) }
                silent = state.places.removeValue(forKey: oldest)
            }
            state.last += 1
            state.places[state.last] = Place(close: close)
            return (state.last, silent)
        }
        silent?.close()
        return number
    }

    /// The peer has said who it is.
    func greeted(_ number: Int) { state.withLock { $0.places[number]?.isKnown = true } }

    func leave(_ number: Int) { state.withLock { _ = $0.places.removeValue(forKey: number) } }
}
