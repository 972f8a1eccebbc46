package import Foundation

extension Process {
    /// Waits for the end on a thread of its own, which must not be one of those that tests run on: Foundation hears of an end by a
    /// socket, and whoever starts a process at the same moment in another way, as exit tests do, hands that socket on. Then it
    /// hears of it when that process has ended too, which may itself wait for a test.
    package func ended() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                self.waitUntilExit()
                continuation.resume()
            }
        }
    }
}
