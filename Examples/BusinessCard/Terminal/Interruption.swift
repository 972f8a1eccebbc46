import Dispatch
import Foundation
import Synchronization

/// Ends an exchange cleanly when the person or the system asks for it: Ctrl-C (SIGINT) or SIGTERM.
///
/// Made once and kept to the process's end.
final class Interruption: Sendable {
    private let received = Mutex<Int32?>(nil)
    private let onFirst: @Sendable () -> Void
    private let beforeExit: @Sendable () -> Void

    /// How long the links may take to close before the process ends without them.
    private static let grace = Duration.seconds(3)

    /// Waits for signals from now on.
    ///
    /// - Parameters:
    ///   - onFirst: ends what is going on.
    ///   - beforeExit: tidies the terminal when a second signal comes, or ending takes too long.
    init(onFirst: @escaping @Sendable () -> Void, beforeExit: @escaping @Sendable () -> Void) {
        self.onFirst = onFirst
        self.beforeExit = beforeExit
        for number in [SIGINT, SIGTERM] {
            Foundation.signal(number, SIG_IGN)  // the source sees it all the same, and the process lives on
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler {
                withExtendedLifetime(source) { self.take(number) }  // a source that nobody holds is silent
            }
            source.resume()
        }
    }

    /// The signal that came, if one did.
    var signal: Int32? { received.withLock { $0 } }

    private func take(_ number: Int32) {
        let isFirst = received.withLock { received in
            defer { received = received ?? number }
            return received == nil
        }
        guard isFirst else { return exitNow(number) }
        onFirst()
        Task.detached {
            try await Task.sleep(for: Self.grace)
            self.exitNow(number)
        }
    }

    private func exitNow(_ number: Int32) {
        beforeExit()
        exit(128 + number)
    }
}
