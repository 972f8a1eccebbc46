import HeapModule

/// Future events by milliseconds: in the order of time, and of adding within one. A ring of lists for
/// the near future, for a heap of millions would take most of the time; a heap for later ones.
struct TimeRing<Event> {
    private struct Later: Comparable {
        let at: Int64
        let number: Int
        let event: Event
        static func < (a: Later, b: Later) -> Bool { (a.at, a.number) < (b.at, b.number) }
        static func == (a: Later, b: Later) -> Bool { (a.at, a.number) == (b.at, b.number) }
    }

    private static var span: Int64 { 1 << 16 }
    private var slots: [[Event]] = Array(repeating: [], count: Int(span))
    /// A bit for each slot that has something.
    private var taken: [UInt64] = Array(repeating: 0, count: Int(span / 64))
    private var later = Heap<Later>()
    private var number = 0
    /// Milliseconds from the start.
    private(set) var now: Int64 = 0

    /// Adds an event; one that is due already comes with the next millisecond.
    mutating func add(_ event: Event, at time: Int64) {
        let time = max(time, now + 1)
        if time - now < Self.span {
            put(event, at: time)
        } else {
            number += 1
            later.insert(Later(at: time, number: number, event: event))
        }
    }

    private mutating func put(_ event: Event, at time: Int64) {
        let index = Int(time % Self.span)
        slots[index].append(event)
        taken[index / 64] |= 1 << UInt64(index % 64)
    }

    /// Goes on to the next millisecond in which something happens, or to the end, and takes what happens in it.
    mutating func advance(to end: Int64) -> [Event] {
        while now < end {
            now += 1
            // Passes over 64 milliseconds without an event; the heap's are far beyond them.
            if now % 64 == 0, taken[Int(now % Self.span) / 64] == 0 { now = min(end, now + 63) }
            while let first = later.min, first.at - now < Self.span {
                later.removeMin()
                put(first.event, at: first.at)
            }
            let index = Int(now % Self.span)
            guard !slots[index].isEmpty else { continue }
            var events: [Event] = []
            swap(&events, &slots[index])
            taken[index / 64] &= ~(1 << UInt64(index % 64))
            return events
        }
        return []
    }
}
