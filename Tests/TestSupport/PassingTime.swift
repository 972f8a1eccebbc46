package import Ferry

extension VirtualTime {
    /// Lets time pass until the task is cancelled: a step for each millisecond of the machine's, or less.
    package func pass(_ step: Duration = .milliseconds(1)) async {
        await repeatedly(every: .milliseconds(1)) { advance(by: step) }
    }

    /// Runs `body` while time passes in another task. Time stands still before and afterwards: what a test does then takes none,
    /// however busy the machine is.
    package func passing<Value>(_ body: () async throws -> Value) async throws -> Value {
        let ticking = Task { await pass() }
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        ticking.cancel()
        await ticking.value
        return try result.get()
    }
}
