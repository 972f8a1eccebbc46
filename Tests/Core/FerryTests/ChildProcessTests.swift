import Foundation
import TestSupport
import Testing

/// What tests start other programs with.
@Suite(.tags(.program), .timeLimit(.minutes(1))) struct ChildProcessTests {
    /// So many that a list of them does not fit into what readdir(3) reads at once: Foundation's `Process` ended the tests here.
    @Test func itStartsBesideManyDescriptors() async throws {
        let descriptors = (0..<1500).map { _ in open("/dev/null", O_RDONLY | O_CLOEXEC) }
        defer { for descriptor in descriptors { close(descriptor) } }
        for _ in 0..<3 {
            let output = Pipe()
            let child = try ChildProcess("/bin/sh", ["-c", "ls /proc/self/fd | wc -l; exit 3"], output: .pipe(output))
            // The three, and the one by which `ls` reads the folder.
            #expect(String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) == "4\n")
            #expect(await child.ended() == .exited(3))
            #expect(!child.isRunning)
        }
    }

    @Test func signalsAreHeardFromAnyThread() async throws {
        let input = Pipe()
        let child = try ChildProcess("/bin/cat", [], input: .pipe(input), output: .none)
        #expect(child.isRunning)
        child.signal(SIGTERM)
        #expect(await child.ended() == .signalled(SIGTERM))
        // It is nobody's any more.
        child.signal(SIGTERM)
    }

    @Test func whatCannotStartIsTold() {
        #expect { try ChildProcess("/nowhere", []) } throws: { "\($0)".hasPrefix("/nowhere: not started: ") }
    }
}
