/// Timers, the earliest first and, where deadlines are equal, the one set first.
///
/// Setting and cancelling take logarithmic and constant time. A cancelled timer lets go of its action at once; its place
/// in the heap is swept out when such places are more than the timers that are set.
struct TimerQueue: Sendable {
    private struct Place: Sendable {
        let deadline: Timestamp
        let number: UInt64

        func precedes(_ other: Place) -> Bool { (deadline, number) < (other.deadline, other.number) }
    }

    private var heap: [Place] = []
    private var actions: [UInt64: @Sendable () -> Void] = [:]
    private var nextNumber: UInt64 = 0

    /// How many timers are set.
    var count: Int { actions.count }

    /// How many places the heap has, those of cancelled timers among them.
    var placeCount: Int { heap.count }

    /// Sets a timer and returns its number.
    mutating func set(_ deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> UInt64 {
        let number = nextNumber
        nextNumber += 1
        actions[number] = action
        heap.append(Place(deadline: deadline, number: number))
        moveUp(heap.count - 1)
        return number
    }

    /// Calls a timer off; one that has run is passed over.
    ///
    /// - Returns: its action, for what that held may end with it, and cancel timers in turn: not under the queue's lock.
    mutating func cancel(_ number: UInt64) -> (@Sendable () -> Void)? {
        guard let action = actions.removeValue(forKey: number) else { return nil }
        if heap.count > 2 * actions.count + 32 {
            heap = heap.filter { actions[$0.number] != nil }
            for place in stride(from: heap.count / 2 - 1, through: 0, by: -1) { moveDown(place) }
        }
        return action
    }

    /// When the next timer is due.
    mutating func nextDeadline() -> Timestamp? {
        while let first = heap.first, actions[first.number] == nil { removeFirst() }
        return heap.first?.deadline
    }

    /// Takes out the next timer if it is due at `limit`.
    mutating func popDue(at limit: Timestamp) -> (deadline: Timestamp, action: @Sendable () -> Void)? {
        guard let deadline = nextDeadline(), deadline <= limit, let first = heap.first,
            let action = actions.removeValue(forKey: first.number)
        else { return nil }
        removeFirst()
        return (deadline, action)
    }

    private mutating func removeFirst() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        moveDown(0)
    }

    private mutating func moveUp(_ start: Int) {
        var place = start
        while place > 0 {
            let parent = (place - 1) / 2
            guard heap[place].precedes(heap[parent]) else { return }
            heap.swapAt(place, parent)
            place = parent
        }
    }

    private mutating func moveDown(_ start: Int) {
        var place = start
        while true {
            let left = 2 * place + 1
            guard left < heap.count else { return }
            let child = left + 1 < heap.count && heap[left + 1].precedes(heap[left]) ? left + 1 : left
            guard heap[child].precedes(heap[place]) else { return }
            heap.swapAt(place, child)
            place = child
        }
    }
}
