import Dispatch
import Foundation
import Synchronization

/// What Ctrl-C (SIGINT) and SIGTERM do to a program: the first ends its work, a second one the process, and so does the time that
/// the work may take to end.
///
/// A handler writes the signal's number into a pipe that a thread reads. A Dispatch source would lose a signal that comes while
/// the source is being made: the signal has to be ignored before.
package final class Interruption: Sendable {
    private enum Phase {
        case working(end: (@Sendable () -> Void)?)
        case ending(Int32)
    }

    private let phase = Mutex(Phase.working(end: nil))
    private let grace: Double
    private let beforeExit: @Sendable () -> Void
    private let leave: @Sendable (Int32) -> Void

    /// How long tidying may take, in seconds: who reads the output may have stopped reading.
    private static let tidying = 0.5

    /// Makes one that hears no signals yet.
    ///
    /// - Parameters:
    ///   - grace: how long the work may take to end, in seconds.
    ///   - beforeExit: tidies the terminal when the process ends before its work has. It may block.
    ///   - leave: ends the process with a status, without what exit(3) does: that waits for a stream that another thread is
    ///     still writing.
    package init(
        grace: Double = 3, beforeExit: @escaping @Sendable () -> Void = {},
        leave: @escaping @Sendable (Int32) -> Void = { _exit($0) }
    ) {
        self.grace = grace
        self.beforeExit = beforeExit
        self.leave = leave
    }

    /// Runs work in a task, which the first signal cancels.
    ///
    /// - Returns: how it ended, and the first signal that came.
    package static func run(
        grace: Double = 3, beforeExit: @escaping @Sendable () -> Void = {},
        _ body: @escaping @Sendable () async throws -> Void
    ) async -> (result: Result<Void, any Error>, signal: Int32?) {
        let interruption = Interruption(grace: grace, beforeExit: beforeExit)
        interruption.listen()
        let task = Task { try await body() }
        interruption.ends { task.cancel() }
        return (await task.result, interruption.signal)
    }

    /// The first signal that came, if one did.
    package var signal: Int32? {
        phase.withLock { if case .ending(let number) = $0 { number } else { nil } }
    }

    /// Hears the process's signals from now on, in place of the one that heard them before, and to the process's end.
    package func listen() { ProcessSignals.hear([SIGINT, SIGTERM]) { [self] in take($0) } }

    /// Says how the work is ended: at once if a signal has come already. It may block.
    package func ends(by end: @escaping @Sendable () -> Void) {
        let hasCome = phase.withLock { phase in
            if case .ending = phase { return true }
            phase = .working(end: end)
            return false
        }
        if hasCome { end() }
    }

    /// Takes note of a signal.
    package func take(_ number: Int32) {
        let (isFirst, end) = phase.withLock { phase -> (Bool, (@Sendable () -> Void)?) in
            guard case .working(let end) = phase else { return (false, nil) }
            phase = .ending(number)
            return (true, end)
        }
        guard isFirst else { return exitNow(number) }
        // On separate threads: ending the work may wait for the very thing that hangs, and a read from the terminal cannot be
        // cancelled.
        DispatchQueue.global().asyncAfter(deadline: .now() + grace) { self.exitNow(number) }
        if let end { Thread.detachNewThread(end) }
    }

    private func exitNow(_ number: Int32) {
        let isTidy = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            self.beforeExit()
            fflush(nil)
            isTidy.signal()
        }
        _ = isTidy.wait(timeout: .now() + Self.tidying)
        leave(128 + number)
    }
}

/// Where the handler of signals writes to; a handler may use nothing that has to be made first.
nonisolated(unsafe) private var signalWriter: Int32 = -1

/// The process's signals, one after another.
package enum ProcessSignals {
    private static let listeners = Mutex<[Int32: @Sendable (Int32) -> Void]>([:])

    /// Calls `body` with each of these signals from now on, in place of what heard them before. It must not block.
    package static func hear(_ numbers: [Int32], _ body: @escaping @Sendable (Int32) -> Void) {
        listeners.withLock { listeners in for number in numbers { listeners[number] = body } }
        _ = isReading
        for number in numbers {
            signal(number) { number in
                let (before, byte) = (errno, UInt8(truncatingIfNeeded: number))
                withUnsafePointer(to: byte) { _ = write(signalWriter, $0, 1) }
                errno = before
            }
        }
    }

    private static let isReading: Bool = {
        let pipe = Pipe()
        signalWriter = pipe.fileHandleForWriting.fileDescriptor
        Thread.detachNewThread {
            // The pipe lives as long as the thread does, which is the process's life.
            while let byte = pipe.fileHandleForReading.readData(ofLength: 1).first {
                listeners.withLock { $0[Int32(byte)] }?(Int32(byte))
            }
        }
        return true
    }()
}
