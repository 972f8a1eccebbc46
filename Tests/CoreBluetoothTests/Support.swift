import Foundation

/// Waits for something that happens on the main queue or another; throws when it has not after ten seconds.
@MainActor func until(
    _ what: String = "the condition", _ condition: @MainActor () -> Bool
) async throws {
    let deadline = ContinuousClock.now + .seconds(10)
    while !condition() {
        guard ContinuousClock.now < deadline else { throw NotInTime(what: what) }
        try await Task.sleep(for: .milliseconds(1))
    }
}

struct NotInTime: Error { let what: String }
