import Foundation

/// How long a wait lasts at most where the environment says so, in seconds (`FERRY_PATIENCE`): for scripts that run the tests
/// over and over with faults in the code. Nothing else limits a wait.
let patience = ProcessInfo.processInfo.environment["FERRY_PATIENCE"].flatMap(Int.init).map { Duration.seconds($0) }

/// A condition that a test waited for in vain.
package struct NotYet: Error, CustomStringConvertible {
    package let description: String

    /// Says it on standard error besides: what a test throws after its time limit is not reported, and the log would have only the
    /// test's name.
    package init(_ description: String) {
        self.description = description
        FileHandle.standardError.write(Data("Waited in vain: \(description)\n".utf8))
    }
}

/// Waits until `condition` holds, and looks again each millisecond.
///
/// It has no limit of its own, so that no result depends on how busy the machine is: the time limit of the suite ends a test
/// that waits in vain, by cancelling it.
/// - Throws: ``NotYet`` with `what` when the test is cancelled; whatever `condition` throws.
package func until(
    _ what: @autoclosure () -> String = "the condition", _ condition: () async throws -> Bool
) async throws {
    let end = patience.map { ContinuousClock.now + $0 }
    while try await !condition() {
        if let end, ContinuousClock.now > end { throw NotYet("\(what()) has not come about") }
        do { try await Task.sleep(for: .milliseconds(1)) } catch { throw NotYet("\(what()) has not come about") }
    }
}

/// Calls `body` with pauses until the task is cancelled: for what happens beside a test all the time, as a peer that is heard.
package func repeatedly(every pause: Duration = .milliseconds(50), _ body: () async throws -> Void) async rethrows {
    while !Task.isCancelled {
        try await body()
        try? await Task.sleep(for: pause)
    }
}

extension Duration {
    /// A timeout that a success has to beat: longer than any time limit of a suite, which ends a test that hangs.
    package static let unreached = Duration.seconds(3600)
}
