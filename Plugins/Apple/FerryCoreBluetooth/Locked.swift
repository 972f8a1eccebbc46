import CoreBluetooth

/// A value behind a lock, for objects of CoreBluetooth's, which are not sendable. The lock is never held while anybody else is
/// called.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func callAsFunction<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure)
        -> Result
    {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// Carries an object of CoreBluetooth's to the queue on which it is used.
struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

extension DispatchQueue {
    /// Runs work on this queue that is not sendable.
    func run(_ work: @escaping () -> Void) {
        let work = Unchecked(work)
        async { work.value() }
    }

    /// The same after a while.
    func run(after seconds: Double, _ work: @escaping () -> Void) {
        let work = Unchecked(work)
        asyncAfter(deadline: .now() + seconds) { work.value() }
    }
}
