import FerryBluetooth
import Synchronization

/// A bounded queue of values in memory that is taken once: pushing and popping allocate nothing.
///
/// The bookkeeping is only touched with the radio's lock held. The bytes of an occupied slot are read by the pump without
/// the lock while it delivers them; nothing writes to a slot before it is popped, which the pump does afterwards. That is
/// why the class may be sent between threads.
final class ValueRing: @unchecked Sendable {
    /// A queued value without its bytes.
    struct Entry {
        var slot: Int
        var length = 0
        var attribute = AttributeID(rawValue: 0)
        var order: UInt64 = 0
        var isIndication = false
    }

    let capacity: Int
    private let slotSize: Int
    private let storage: UnsafeMutableRawPointer
    private let entries: UnsafeMutablePointer<Entry>
    private var head = 0
    private(set) var count = 0

    init(capacity: Int, slotSize: Int) {
        self.capacity = capacity
        self.slotSize = slotSize
        storage = .allocate(byteCount: capacity * slotSize, alignment: 16)
        entries = .allocate(capacity: capacity)
        for slot in 0..<capacity { (entries + slot).initialize(to: Entry(slot: slot)) }
    }

    deinit {
        storage.deallocate()
        entries.deallocate()
    }

    /// Set, with the lock held, when a run of values that is being delivered has to stop after the present one.
    let isInterrupted = Atomic(false)

    var isEmpty: Bool { count == 0 }
    var isFull: Bool { count == capacity }

    private func position(_ index: Int) -> Int {
        let position = head + index
        return position < capacity ? position : position - capacity
    }

    /// The oldest value; only asked for when there is one.
    var first: Entry { entries[head] }

    /// The value at a place from the oldest on; only asked for when there is one.
    func entry(at index: Int) -> Entry { entries[position(index)] }

    /// Copies a value in, cut to the slot; only called when there is room.
    func push(_ bytes: UnsafeRawBufferPointer, length: Int, attribute: AttributeID, order: UInt64, isIndication: Bool) {
        let length = min(length, bytes.count, slotSize)
        let position = position(count)
        let slot = entries[position].slot
        entries[position] = Entry(
            slot: slot, length: length, attribute: attribute, order: order, isIndication: isIndication)
        if length > 0, let base = bytes.baseAddress {
            (storage + slot * slotSize).copyMemory(from: base, byteCount: length)
        }
        count += 1
    }

    /// Forgets the oldest value.
    func popFirst() {
        guard count > 0 else { return }
        head = position(1)
        count -= 1
    }

    /// Exchanges the two oldest values, which keep their places in the order of control PDUs. False when there is one.
    func swapFirstTwo() -> Bool {
        guard count > 1 else { return false }
        let second = position(1)
        swap(&entries[head], &entries[second])
        swap(&entries[head].order, &entries[second].order)
        return true
    }

    /// The bytes of an entry, valid until it is popped.
    func bytes(of entry: Entry) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: storage + entry.slot * slotSize, count: entry.length)
    }
}
