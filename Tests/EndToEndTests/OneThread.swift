import Ferry
import FerryTesting
import Synchronization
import TestSupport

extension VirtualTime {
    /// Virtual time has come to its limit, or to its last timer, and the body has not returned.
    struct NotDone: Error {}

    /// What `body` returns. It and all tasks that it begins run on this thread, and time passes only when none of them can go
    /// on: on threads of their own they would race with it, and a slow one would be late for what it has only begun to ask.
    ///
    /// - Throws: ``NotDone``, and what `body` throws.
    func run<Value: Sendable>(
        within limit: Duration = .seconds(1_000_000), _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let outcome = Outcome<Value>()
        let tasks = SteppedTasks()
        let task = tasks.run {
            Task {
                do { outcome.value = .success(try await body()) } catch { outcome.value = .failure(error) }
            }
        }
        let end = now + limit
        tasks.run {
            repeat {
                while tasks.step() {}
                guard outcome.value == nil, let next = nextDeadline, next <= end else { break }
            } while runNext()
            task.cancel()
            while tasks.step() {}
        }
        guard let result = outcome.value else { throw NotDone() }
        return try result.get()
    }
}

private final class Outcome<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)
    var value: Result<Value, any Error>? {
        get { result.withLock { $0 } }
        set { result.withLock { $0 = newValue } }
    }
}

extension ConformanceTime {
    /// For kits within ``/Ferry/VirtualTime/run(within:_:)``: whoever can go on does so before time passes.
    static func stepped(_ time: VirtualTime, timeout: Duration = .seconds(60)) -> ConformanceTime {
        ConformanceTime(timeout: timeout) { duration in
            for _ in 0..<100 { await Task.yield() }
            time.advance(by: duration)
            await Task.yield()
        }
    }
}
