package import Testing

/// One test at a time of all that carry it, in whichever suite or target they are: what they set is the process's.
package struct Exclusive: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        // The suite itself has nothing to exclude.
        guard testCase != nil else { return try await function() }
        await Turnstile.shared.enter()
        let result: Result<Void, any Error>
        do { result = .success(try await function()) } catch { result = .failure(error) }
        await Turnstile.shared.leave()
        try result.get()
    }
}

extension Trait where Self == Exclusive {
    /// For tests that choose the process's adapters, quirks or folders for CoreBluetooth.
    package static var exclusive: Self { Exclusive() }
}

private actor Turnstile {
    static let shared = Turnstile()
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        if !isTaken { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
