import Foundation
import TestSupport
import Testing

/// `ferry` as people run it: by a shell.
enum ProgramShell {
    /// Runs a script in a folder of its own, with `$FERRY` and the variables. `both RECEIVER SENDER` runs the two arguments and
    /// prints how each has ended. `until_size FILE BYTES` waits for more bytes, `until_there FILE TEXT` for the text. Ends the
    /// script and its programs when the test is cancelled: there is no other limit.
    ///
    /// - Returns: what it and its programs have printed.
    static func run(_ script: String, _ variables: [String: String] = [:]) async throws -> String {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "ferry-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let bundle = try #require(
            CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? Bundle.main.executableURL?.path)
        let program = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("ferry")
        try #require(FileManager.default.isExecutableFile(atPath: program.path), "\(program.path) has not been built")
        let environment = ProcessInfo.processInfo.environment.merging([
            "FERRY": program.path
        ]) { $1 }.merging(variables) { $1 }
        let helpers = """
            both() { eval "$1" & local r=$!; eval "$2"; echo "sent $?"; wait $r; echo "received $?"; }
            until_size() { until [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt $2 ]; do sleep 0.05; done; }
            until_there() { until grep -qa "$2" "$1" 2> /dev/null; do sleep 0.05; done; }

            """
        let pipe = Pipe()
        let shell = try ChildProcess(
            "/bin/bash", ["-c", helpers + script], environment: environment, folder: folder.path, output: .pipe(pipe),
            errors: .pipe(pipe))
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let data = pipe.fileHandleForReading.readDataToEndOfFile()
                    shell.endedHere()
                    continuation.resume(returning: String(decoding: data, as: UTF8.self))
                }
            }
        } onCancel: {
            shell.signalGroup(SIGKILL)
        }
    }

    /// Runs a script whose programs end after some seconds, `$N`, with more of them each time, until its output has what a busy
    /// machine does later.
    static func run(
        _ script: String, _ variables: [String: String] = [:], untilThere isThere: (String) throws -> Bool
    ) async throws -> String {
        var seconds = 1
        while true {
            let output = try await run(script, variables.merging(["N": "\(seconds)"]) { $1 })
            if try isThere(output) { return output }
            guard !Task.isCancelled else { throw NotYet("what is looked for is missing in \(output)") }
            seconds *= 3
        }
    }
}
