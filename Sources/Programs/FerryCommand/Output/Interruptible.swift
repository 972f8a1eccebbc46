import FerryTransports
import Foundation

/// Work that Ctrl-C and SIGTERM end.
enum Interruptible {
    /// Runs the work in a task, which the first signal cancels. A second one ends the process, and so does the time.
    ///
    /// - Parameters:
    ///   - grace: how long the work may take to end, in seconds.
    ///   - beforeExit: tidies the terminal, when the process ends at once.
    ///   - body: the work.
    /// - Returns: how it ended, and the first signal that came.
    static func run(
        grace: Double = 3, beforeExit: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable () async throws -> Void
    ) async -> (result: Result<Void, any Error>, signal: Int32?) {
        // Who reads the output may go; writing says so then.
        signal(SIGPIPE, SIG_IGN)
        return await Interruption.run(grace: grace, beforeExit: beforeExit, body)
    }
}
