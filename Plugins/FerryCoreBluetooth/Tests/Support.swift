import CoreBluetooth

/// Each quirk by itself, and all at once.
let everyQuirk: [CBQuirks] = (0..<12).map { CBQuirks(rawValue: 1 << $0) } + [CBQuirks(rawValue: 0xFFF)]

struct NotInTime: Error { let what: String }

/// Waits for something that happens on another queue; throws when it has not after two minutes.
func waitUntil(_ what: String, _ condition: () async -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while await !condition() {
        guard ContinuousClock.now < deadline else { throw NotInTime(what: what) }
        try await Task.sleep(for: .milliseconds(2))
    }
}
