public import Ferry
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// How a kit waits: never without a deadline, and on the time source of the implementation under test.
public struct ConformanceTime: Sendable {
    /// The longest wait for anything, in the time of the implementation under test.
    public let timeout: Duration
    private let letTimePass: @Sendable (Duration) async -> Void

    /// Waits on time that `letTimePass` lets pass: a real sleep, or an advance of virtual time.
    public init(timeout: Duration = .seconds(10), letTimePass: @escaping @Sendable (Duration) async -> Void) {
        self.timeout = timeout
        self.letTimePass = letTimePass
    }

    /// The system's time.
    public static let system = ConformanceTime { try? await Task.sleep(for: $0) }

    /// Virtual time. Between the steps the thread is left to the tasks that the passing of time has woken.
    public static func virtual(_ time: VirtualTime, timeout: Duration = .seconds(10)) -> ConformanceTime {
        ConformanceTime(timeout: timeout) { duration in
            time.advance(by: duration)
            try? await Task.sleep(for: .microseconds(50))
        }
    }

    /// Lets so much time pass.
    func pass(_ duration: Duration) async { await letTimePass(duration) }

    /// Waits until `condition` holds.
    ///
    /// - Throws: ``ConformanceFailure`` with `requirement` and `what`, after ``timeout``.
    public func wait(_ requirement: String, for what: String, until condition: () -> Bool) async throws {
        var waited = Duration.zero
        var step = Duration.milliseconds(1)
        while !condition() {
            guard waited < timeout else { throw ConformanceFailure(requirement, "waited \(timeout) for \(what)") }
            await letTimePass(step)
            waited += step
            step = min(step * 1.25, .milliseconds(50))
        }
    }

    /// Runs something that suspends, letting time pass until it is done.
    func run<Value: Sendable>(
        _ requirement: String, _ what: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let outcome = OutcomeBox<Value>()
        let task = Task {
            do { outcome.set(.success(try await body())) } catch { outcome.set(.failure(error)) }
        }
        do {
            try await wait(requirement, for: what) { outcome.value != nil }
        } catch {
            task.cancel()
            throw error
        }
        guard let result = outcome.value else { throw ConformanceFailure(requirement, "\(what) had no outcome") }
        return try result.get()
    }
}

private final class OutcomeBox<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)
    var value: Result<Value, any Error>? { state.withLock { $0 } }
    func set(_ result: Result<Value, any Error>) { state.withLock { $0 = result } }
}

/// Notices events that come from within a call of the owner's, or that overlap.
final class CallGuard: Sendable {
    private struct State {
        var callers: Set<UInt> = []
        var isInEvent = false
        var violation: String?
    }

    private let state = Mutex(State())

    var violation: String? { state.withLock { $0.violation } }

    private static var thread: UInt {
        #if canImport(Darwin)
            UInt(bitPattern: pthread_self())
        #else
            UInt(pthread_self())
        #endif
    }

    /// A call of the owner's into the implementation.
    func call<Value: ~Copyable, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        let thread = Self.thread
        let isOutermost = state.withLock { $0.callers.insert(thread).inserted }
        defer { if isOutermost { state.withLock { _ = $0.callers.remove(thread) } } }
        return try body()
    }

    /// An event of the implementation's. False when it came from within a call: the owner, whose locks may be held, must
    /// not act on it.
    @discardableResult
    func event(_ name: String, mayOverlap: Bool = false, _ body: () -> Void = {}) -> Bool {
        let thread = Self.thread
        let isOutside = state.withLock { state in
            let isOutside = !state.callers.contains(thread)
            if !isOutside { state.violation = "\(name) was called from within a call of the owner" }
            guard !mayOverlap else { return isOutside }
            if state.isInEvent { state.violation = "\(name) was called while another event was being handled" }
            state.isInEvent = true
            return isOutside
        }
        body()
        if !mayOverlap { state.withLock { $0.isInEvent = false } }
        return isOutside
    }
}

/// Fails a check unless `condition` holds.
func require(_ condition: Bool, _ requirement: String, _ detail: @autoclosure () -> String) throws {
    guard condition else { throw ConformanceFailure(requirement, detail()) }
}
