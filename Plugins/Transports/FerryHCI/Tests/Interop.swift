#if HCI
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    extension Trait where Self == ConditionTrait {
        /// What meets host stacks or controllers that nobody here wrote, which are programs in Python and Rust.
        static var withOthers: Self { .enabled(if: Interop.isAskedFor, "runs in scripts/interop hosts") }
    }

    /// Processes that play the other parts: virtual controllers and Bumble's host. `scripts/setup interop` installs them.
    enum Interop {
        private static let python = packageFolder.appending(path: ".build-interop/venv/bin/python")

        static let rootCanal: URL = {
            let packages = packageFolder.appending(path: ".build-interop/venv/lib")
            let version = (try? FileManager.default.contentsOfDirectory(atPath: packages.path))?.first ?? "python3"
            return packages.appending(
                path: "\(version)/site-packages/rootcanal/bin/linux-x86_64/rootcanal")
        }()

        /// Runs a program to its end and returns what it printed.
        static func run(_ program: String, _ arguments: [String]) async throws -> String {
            let script = try Script(executable: URL(filePath: "/usr/bin/env"), [program] + arguments)
            let status = await script.exitStatus()
            if status != 0 { throw Failure(what: "\(program) ended with \(status): \(script.output)") }
            return script.output
        }

        struct Failure: Error { let what: String }

        /// Where captures are kept, and a new name there; nil when none are.
        static func capture(_ name: String) -> String? {
            ProcessInfo.processInfo.environment["FERRY_CAPTURES"].map {
                "\($0)/\(name)-\(UInt32.random(in: 0 ... .max)).btsnoop"
            }
        }

        /// Only where they are asked for: a second opinion, which takes minutes.
        static let isAskedFor = ProcessInfo.processInfo.environment["FERRY_INTEROP"] != nil

        /// A program of this package, which the build puts beside the test bundle.
        static func program(_ name: String) -> URL {
            let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.executablePath ?? ""
            return URL(filePath: bundle).deletingLastPathComponent().appending(path: name)
        }

        /// A script of `Tests/Interop`, or another program, at work, with its output line by line.
        final class Script: Sendable {
            private let process: ChildProcess
            private let input = Pipe()
            private let state = Mutex(State())

            private struct Waiter {
                let id: UUID
                let isMet: @Sendable (String, Int32?) -> Bool
                let continuation: CheckedContinuation<Void, Never>
            }

            /// Ends what a process has written: this process puts it behind that. A child that another test has started meanwhile
            /// may hold the pipe open, so that its own end can go unreported.
            private static let endOfOutput: UInt8 = 4

            private struct State {
                var output = ""
                var status: Int32?
                var hasAllOutput = false
                /// Known when the last of the output is there too.
                var exit: Int32? { hasAllOutput ? status : nil }
                var waiters: [Waiter] = []
            }

            convenience init(_ name: String, _ arguments: [String]) throws {
                let path = packageFolder.appending(path: "Tests/Interop/\(name)").path
                try self.init(executable: Interop.python, ["-u", path] + arguments)
            }

            /// - Parameter end: output from this text on is not kept.
            init(executable: URL, _ arguments: [String], keepsUntil end: String? = nil) throws {
                let pipe = Pipe()
                let ending = FileHandle(
                    fileDescriptor: fcntl(pipe.fileHandleForWriting.fileDescriptor, F_DUPFD_CLOEXEC, 0),
                    closeOnDealloc: true)
                process = try ChildProcess(
                    executable.path, arguments, input: .pipe(input), output: .pipe(pipe), errors: .pipe(pipe))
                pipe.readOnThread { [weak self] data in
                    self?.change { state in
                        let last = data.firstIndex(of: Self.endOfOutput)
                        if data.isEmpty || last != nil { state.hasAllOutput = true }
                        if let end, state.output.contains(end) { return }
                        state.output += String(decoding: data[..<(last ?? data.endIndex)], as: UTF8.self)
                    }
                }
                process.whenEnded { [weak self] end in
                    self?.change { $0.status = end.status }
                    try? ending.write(contentsOf: Data([Self.endOfOutput]))
                    try? ending.close()
                }
            }

            deinit { stop() }

            var output: String { state.withLock { $0.output } }
            var lines: [Substring] { output.split(separator: "\n") }

            private func change(_ body: (inout State) -> Void) {
                let met = state.withLock { state in
                    body(&state)
                    let (output, exit) = (state.output, state.exit)
                    let met = state.waiters.filter { $0.isMet(output, exit) }
                    state.waiters.removeAll { $0.isMet(output, exit) }
                    return met
                }
                for waiter in met { waiter.continuation.resume() }
            }

            private func cancel(_ id: UUID) {
                let waiter = state.withLock { state in
                    state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
                }
                waiter?.continuation.resume()
            }

            /// Waits, or until the test is cancelled: what is expected afterwards then fails.
            private func wait(until isMet: @escaping @Sendable (String, Int32?) -> Bool) async {
                let id = UUID()
                await withTaskCancellationHandler {
                    await withCheckedContinuation { continuation in
                        let waiter = Waiter(id: id, isMet: isMet, continuation: continuation)
                        let isMetNow = state.withLock { state in
                            if isMet(state.output, state.exit) { return true }
                            state.waiters.append(waiter)
                            return false
                        }
                        if isMetNow { continuation.resume() }
                        // A cancellation before the waiter was there has found none to resume.
                        if Task.isCancelled { cancel(id) }
                    }
                } onCancel: {
                    cancel(id)
                }
            }

            /// Waits until the script has printed `text` so many times, or has ended.
            func hasPrinted(_ text: String, times count: Int = 1) async -> Bool {
                await wait { $0.ranges(of: text).count >= count || $1 != nil }
                return output.ranges(of: text).count >= count
            }

            /// Waits for `text` and the six digits that follow it.
            func number(after text: String) async -> Int? {
                await wait { output, exit in
                    exit != nil || output.range(of: text).map { output[$0.upperBound...].count >= 6 } ?? false
                }
                let output = output
                return output.range(of: text).flatMap { Int(output[$0.upperBound...].prefix(6)) }
            }

            /// Gives it a line on standard input.
            func say(_ line: String) { try? input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

            /// Waits for the end.
            func exitStatus() async -> Int32 {
                await wait { $1 != nil }
                return state.withLock { $0.exit } ?? -1
            }

            /// As Ctrl-C does.
            func interrupt() { process.signal(SIGINT) }

            /// At once.
            func stop() { process.signal(SIGKILL) }
        }

        /// What this process's tests leave, which goes with it.
        private static let leavings: URL = {
            atexit { try? FileManager.default.removeItem(at: Interop.leavings) }
            let folder = FileManager.default.temporaryDirectory.appending(
                path: "ferry-\(UInt64.random(in: 0 ... .max))")
            try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            return folder
        }()

        /// The path of a new file, which is not there yet.
        static func file(_ name: String) -> String {
            leavings.appending(path: "\(name)-\(UInt32.random(in: 0 ... .max))").path
        }

        /// A new folder, with a slash at its end.
        static func folder() -> String {
            let folder = file("folder")
            try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            return folder + "/"
        }

        /// Controllers on one virtual radio, each on a Unix socket of its own.
        static func controllers(_ count: Int, _ options: [String] = []) async throws -> (Script, [String]) {
            let folder = folder()
            let paths = (0..<count).map { folder + "\($0)" }
            let script = try Script("controllers.py", paths.map { "unix-server:\($0)" } + options)
            _ = await script.hasPrinted("C\(count - 1) ")
            return (script, paths)
        }
    }
#endif
