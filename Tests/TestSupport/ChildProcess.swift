import CTestSupport
package import Foundation
import Synchronization

/// A program that a test starts, by posix_spawn(3).
///
/// Not by Foundation's `Process`. That of Swift 6.3 ends the tests with SIGSEGV where about 1 360 descriptors are open, and tests
/// that run at once open as many: it reads past the end of what readdir(3) gives it of `/proc/self/fd`
/// (swift-corelibs-foundation 5472, mended in later versions). Nor does a program that it starts hear SIGTERM when the thread that
/// starts it blocks that, as threads of Swift's concurrency do.
///
/// The program is the first of a process group, and has no descriptors but the three standard ones.
package final class ChildProcess: Sendable {
    /// One of the three standard streams.
    package enum Stream: Sendable {
        case inherited, none
        case pipe(Pipe)
        case file(FileHandle)
    }

    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case signalled(Int32)

        /// What it exited with, or the number of the signal that ended it, below zero.
        package var status: Int32 {
            switch self {
            case .exited(let status): status
            case .signalled(let signal): -signal
            }
        }
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private struct State {
        /// Nil while it runs.
        var ending: Ending?
        var listeners: [@Sendable (Ending) -> Void] = []
    }

    /// A program that is to crash writes down no backtrace, which takes seconds.
    private static let silence = ["SWIFT_BACKTRACE": "enable=no"]

    package let identifier: Int32
    /// Kept open for the program's life.
    private let streams: [Stream]
    private let state = Mutex(State())

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: where the program is; the path is not searched for it.
    ///   - environment: nil for this process's.
    ///   - folder: the folder that it works in; nil for this process's.
    ///   - output: a pipe is closed for writing here, so that reading it ends with the program and those it starts.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String]? = nil, folder: String? = nil,
        input: Stream = .none, output: Stream = .inherited, errors: Stream = .inherited
    ) throws {
        streams = [input, output, errors]
        identifier = try Self.spawn(
            path, [path] + arguments, (environment ?? ProcessInfo.processInfo.environment).merging(Self.silence) { $1 },
            folder, streams)
        if case .pipe(let pipe) = input { try? pipe.fileHandleForReading.close() }
        for stream in [output, errors] {
            // Both may be the same pipe.
            if case .pipe(let pipe) = stream { try? pipe.fileHandleForWriting.close() }
        }
        Thread.detachNewThread { [self] in
            var information = siginfo_t()
            // Its number stays its own until `reap`, under the lock that signals are sent under.
            while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
            reap()
        }
    }

    package var ending: Ending? { state.withLock { $0.ending } }
    package var isRunning: Bool { ending == nil }

    /// Sends it a signal, unless it has ended.
    package func signal(_ signal: Int32) {
        state.withLock { state in
            if state.ending == nil { kill(identifier, signal) }
        }
    }

    /// Sends a signal to it and to all that it has started, unless it has ended.
    package func signalGroup(_ signal: Int32) {
        state.withLock { state in
            if state.ending == nil { kill(-identifier, signal) }
        }
    }

    /// Waits for its end, whether or not the task is cancelled: kill it then.
    @discardableResult package func ended() async -> Ending {
        await withCheckedContinuation { continuation in whenEnded { continuation.resume(returning: $0) } }
    }

    /// Waits for its end with the thread, which none that tests run on should be.
    @discardableResult package func endedHere() -> Ending {
        while true {
            if let ending { return ending }
            let end = DispatchSemaphore(value: 0)
            whenEnded { _ in end.signal() }
            end.wait()
        }
    }

    /// Calls `body` once with its end, on another thread, or at once when it has ended.
    package func whenEnded(_ body: @escaping @Sendable (Ending) -> Void) {
        let ending = state.withLock { state in
            if state.ending == nil { state.listeners.append(body) }
            return state.ending
        }
        if let ending { body(ending) }
    }

    private func reap() {
        let (ending, listeners) = state.withLock { state in
            var word: Int32 = 0
            while waitpid(identifier, &word, 0) < 0, errno == EINTR {}
            // WIFEXITED and its like are macros, which Swift does not import: wait(2).
            let ending: Ending = word & 0x7F == 0 ? .exited(word >> 8 & 0xFF) : .signalled(word & 0x7F)
            state.ending = ending
            defer { state.listeners = [] }
            return (ending, state.listeners)
        }
        for listener in listeners { listener(ending) }
    }

    private static func spawn(
        _ path: String, _ words: [String], _ environment: [String: String], _ folder: String?, _ streams: [Stream]
    ) throws -> Int32 {
        func check(_ code: Int32, _ what: String) throws {
            guard code == 0 else { throw Failure(description: "\(path): \(what): \(String(cString: strerror(code)))") }
        }
        let nowhere = open("/dev/null", O_RDWR | O_CLOEXEC)
        try check(nowhere < 0 ? errno : 0, "/dev/null")
        defer { close(nowhere) }
        let descriptors = zip(Int32(0)..., streams).map { number, stream in
            switch stream {
            case .inherited: number
            case .none: nowhere
            case .pipe(let pipe):
                (number == 0 ? pipe.fileHandleForReading : pipe.fileHandleForWriting).fileDescriptor
            case .file(let handle): handle.fileDescriptor
            }
        }
        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var identifier: Int32 = 0
        try check(ferry_spawn(&identifier, path, arguments, variables, folder, descriptors), "not started")
        return identifier
    }
}
