package import Ferry
package import FerryTesting
import Synchronization

extension VirtualTime {
    /// Virtual time has come to its limit, or to its last timer, and the body has not returned.
    package struct NotDone: Error {}

    /// What `body` returns. It and all tasks that it begins run on this thread, and time passes only when none of them can go
    /// on: on threads of their own they would race with it, and a slow one would be late for what it has only begun to ask.
    ///
    /// - Throws: ``NotDone``, and what `body` throws.
    package func run<Value: Sendable>(
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

extension VirtualTime {
    /// Waits within ``run(within:_:)`` until `condition` holds, and looks again each virtual millisecond.
    ///
    /// - Throws: ``NotYet`` with `what` when the task is cancelled; rethrows the errors of `condition`.
    package func until(
        _ what: @autoclosure () -> String = "the condition", _ condition: () async throws -> Bool
    ) async throws {
        while try await !condition() {
            do { try await sleep(for: .milliseconds(1)) } catch { throw NotYet("\(what()) has not come about") }
        }
    }

    /// Calls `move` within ``run(within:_:)`` until the task is cancelled, and lets time pass when it has moved nothing.
    package func keep(_ move: @escaping @Sendable () -> Bool) async {
        while !Task.isCancelled {
            if move() { await Task.yield() } else { try? await sleep(for: .microseconds(300)) }
        }
    }
}

extension ConformanceTime {
    /// For kits within ``/Ferry/VirtualTime/run(within:_:)``: whoever can go on does so before time passes.
    package static func stepped(_ time: VirtualTime, timeout: Duration = .seconds(60)) -> ConformanceTime {
        ConformanceTime(timeout: timeout) { duration in
            for _ in 0..<100 { await Task.yield() }
            time.advance(by: duration)
            await Task.yield()
        }
    }
}
