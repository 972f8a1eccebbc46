import Dispatch
import Foundation
import Synchronization

/// Work that Ctrl-C and SIGTERM end.
enum Interruptible {
    /// Runs the work in a task, which the first signal cancels. A second one ends the process, and so does the time.
    ///
    /// - Parameters:
    ///   - grace: how long the work may take to end, in seconds.
    ///   - beforeExit: tidies the terminal, when the process ends at once.
    ///   - body: the work.
    /// - Returns: how it ended, and the signal that came.
    static func run(
        grace: Double = 3, beforeExit: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable () async throws -> Void
    ) async -> (result: Result<Void, any Error>, signal: Int32?) {
        // Whoever reads our output may go; writing says so then.
        signal(SIGPIPE, SIG_IGN)
        let task = Task { try await body() }
        let caught = Mutex<Int32?>(nil)
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isSecond = caught.withLock { caught in
                    defer { caught = number }
                    return caught != nil
                }
                if isSecond { exit(128 + number) }
                task.cancel()
                // A read that waits for somebody to type cannot be called off.
                DispatchQueue.global().asyncAfter(deadline: .now() + grace) {
                    beforeExit()
                    exit(128 + number)
                }
            }
            source.resume()
            return source
        }
        defer { for source in sources { source.cancel() } }
        let result = await task.result
        return (result, caught.withLock { $0 })
    }
}
