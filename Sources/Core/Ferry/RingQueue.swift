/// A queue in a ring of memory: both ends in constant time, any element by its place.
///
/// The framings use it rather than swift-collections' `Deque`, which does not compile with Embedded Swift. The memory of a
/// ring is kept until the queue is released; what an element owns is released when the element leaves.
/// Public, so that what other modules do with it is compiled for their elements.
public struct RingQueue<Element> {
    /// Its count is a power of two, or zero. Slots outside the queue are nil.
    @usableFromInline var slots: [Element?] = []
    /// The slot of the first element.
    @usableFromInline var head = 0
    /// The number of slots in use.
    @usableFromInline var used = 0

    /// Makes an empty queue without memory.
    @inlinable public init() {}

    /// The number of elements.
    @inlinable public var count: Int { used }

    /// The first element; nil when the queue is empty.
    @inlinable public var first: Element? { count == 0 ? nil : slots[head] }

    /// Whether there is no element.
    @inlinable public var isEmpty: Bool { count == 0 }

    @inlinable func slot(_ place: Int) -> Int { (head &+ place) & (slots.count &- 1) }

    /// Adds an element behind the last.
    @inlinable public mutating func append(_ element: Element) {
        if count == slots.count { grow() }
        slots[slot(count)] = element
        used &+= 1
    }

    /// Adds an element before the first.
    @inlinable public mutating func prepend(_ element: Element) {
        if count == slots.count { grow() }
        head = slot(-1)
        slots[head] = element
        used &+= 1
    }

    /// Takes the first element out; nil when the queue is empty.
    @inlinable public mutating func popFirst() -> Element? {
        if count == 0 { return nil }
        let element = slots[head].take()
        head = slot(1)
        used &-= 1
        return element
    }

    /// Takes the first element out of a queue that is not empty.
    @inlinable @discardableResult public mutating func removeFirst() -> Element {
        guard let element = popFirst() else { preconditionFailure("An empty queue has no first element.") }
        return element
    }

    /// Takes out the elements for which `isRemoved` returns true; the others keep their order.
    @inlinable public mutating func removeAll(where isRemoved: (Element) -> Bool) {
        var kept = 0
        for place in 0..<count {
            guard let element = slots[slot(place)].take(), !isRemoved(element) else { continue }
            slots[slot(kept)] = element
            kept += 1
        }
        used = kept
    }

    @inlinable @inline(never) mutating func grow() {
        let capacity = slots.isEmpty ? 4 : 2 * slots.count
        var larger: [Element?] = []
        larger.reserveCapacity(capacity)
        for place in 0..<count { larger.append(slots[slot(place)].take()) }
        while larger.count < capacity { larger.append(nil) }
        slots = larger
        head = 0
    }
}

extension RingQueue: RandomAccessCollection, MutableCollection {
    /// The place of the first element: 0.
    @inlinable public var startIndex: Int { 0 }
    /// The place behind the last element.
    @inlinable public var endIndex: Int { count }

    // swift-format-ignore: NeverForceUnwrap
    /// The element at a place, counted from the first. Traps outside the queue, where slots are nil.
    @inlinable public subscript(place: Int) -> Element {
        get { slots[slot(place)]! }
        _modify { yield &slots[slot(place)]! }
    }
}

extension RingQueue: ExpressibleByArrayLiteral {
    /// The elements in their order.
    @inlinable public init(arrayLiteral elements: Element...) {
        self.init()
        for element in elements { append(element) }
    }
}

extension RingQueue: Sendable where Element: Sendable {}
