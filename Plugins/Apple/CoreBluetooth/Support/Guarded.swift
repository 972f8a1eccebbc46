import Foundation

/// A value behind a lock, for classes that any thread may use. The lock is never held while a delegate is called.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func callAsFunction<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }

    var current: Value {
        get { self { $0 } }
        set { self { $0 = newValue } }
    }
}

/// A weak reference that any thread may read and set.
final class WeakReference<Object: AnyObject>: @unchecked Sendable {
    private let lock = NSLock()
    private weak var reference: Object?

    init(_ object: Object? = nil) { reference = object }

    var object: Object? {
        get { lock.withLock { reference } }
        set { lock.withLock { reference = newValue } }
    }
}

/// Objects by key, for as long as another reference keeps them: the same peer is always the same object.
final class WeakTable<Key: Hashable, Object: AnyObject>: @unchecked Sendable {
    private struct Entry { weak var object: Object? }
    private let lock = NSLock()
    private var entries: [Key: Entry] = [:]
    private var sweepAt = 64

    /// The object of a key, made when there is none.
    func object(_ key: Key, make: () -> Object) -> Object {
        lock.withLock {
            if let object = entries[key]?.object { return object }
            let object = make()
            entries[key] = Entry(object: object)
            if entries.count > sweepAt {
                entries = entries.filter { $0.value.object != nil }
                sweepAt = max(64, entries.count * 2)
            }
            return object
        }
    }

    /// The object of a key, if there is one.
    func object(_ key: Key) -> Object? { lock.withLock { entries[key]?.object } }

    var all: [Object] { lock.withLock { entries.values.compactMap(\.object) } }
}
