import Ferry
import Synchronization

/// When something happened last.
final class LastActivity: Sendable {
    private let last = Mutex(SystemTime().now)

    /// Something has happened.
    func touch() { last.withLock { $0 = SystemTime().now } }

    /// How long nothing has.
    var silence: Duration { last.withLock { SystemTime().now - $0 } }
}
