import Synchronization
import TestSupport
import Testing

@testable import BusinessCard

@Suite(.tags(.program)) struct TerminalTests {
    @Test func inAPipeProgressIsALinePerQuarter() {
        let output = Output()
        let console = output.console(showsBar: false)
        for done in 0...100 { console.progress("Sending", done, of: 100) }
        console.endProgress()
        console.progress("Sending", 7, of: 7)
        #expect(
            output.text
                == "Sending  25 of 100 bytes\nSending  50 of 100 bytes\nSending  75 of 100 bytes\n"
                + "Sending  100 of 100 bytes\nSending  7 of 7 bytes\n")
    }

    @Test func onATerminalABarMovesAndLinesPassAboveIt() {
        let output = Output()
        let console = output.console(showsBar: true, width: 80)
        console.progress("Sending", 10, of: 40)
        console.line("hello")
        console.progress("Sending", 40, of: 40)
        console.endProgress()
        console.endProgress()
        let empty = "Sending  [##########..............................]  10 of 40 bytes"
        let full = "Sending  [########################################]  40 of 40 bytes"
        #expect(output.text == empty + "\r\u{1B}[Khello\n" + empty + "\r\u{1B}[K" + full + "\n")
    }

    @Test func aNarrowTerminalIsNeverOverrun() {
        for width in 20...120 {
            let output = Output()
            output.console(showsBar: true, width: width).progress("Sending", 1, of: 9)
            #expect(output.text.count < max(width, 25))
        }
    }

    @Test func whatCannotBeWrittenIsRememberedAndNotRepeated() {
        struct Full: Error {}
        let attempts = Mutex(0)
        let console = Console(showsBar: false) { _ in
            attempts.withLock { $0 += 1 }
            throw Full()
        }
        #expect(!console.isBroken)
        console.line("one")
        console.line("two")
        #expect(console.isBroken)
        #expect(attempts.withLock { $0 } == 1)
    }

    @Test(arguments: [
        ("Zoë 李 👩‍💻", "Zoë 李 👩‍💻"), ("\u{1B}[2J", "\\u{1B}[2J"), ("a\nb\r", "a\\nb\\u{D}"),
        ("\u{202E}gpj", "\\u{202E}gpj"), ("\u{9B}2J", "\\u{9B}2J"), ("\u{2028}", "\\u{2028}"),
        (String(repeating: "é", count: 201), String(repeating: "é", count: 200) + "... (402 bytes)"),
    ])
    func aPeersWordsCannotTakeOverTheTerminal(_ text: String, _ shown: String) {
        #expect(text.printable == shown)
    }

    @Test func durationsAreShort() {
        #expect(Duration.microseconds(7500).forPeople == "7.5 ms")
        #expect(Duration.zero.forPeople == "0 ms")
        #expect(Duration.nanoseconds(1_234_567).forPeople == "1.23 ms")
        #expect(Duration.milliseconds(1250).forPeople == "1.25 s")
        #expect(Duration.seconds(30).forPeople == "30 s")
        #expect(Duration.seconds(Int64.max).forPeople.hasSuffix(" s"))
    }
}

/// Keeps what a console writes.
final class Output: Sendable {
    private let written = Mutex("")
    private let onWrite: @Sendable (String) -> Void

    init(onWrite: @escaping @Sendable (String) -> Void = { _ in }) { self.onWrite = onWrite }

    var text: String { written.withLock { $0 } }

    func console(showsBar: Bool = false, width: Int = 80) -> Console {
        Console(showsBar: showsBar, width: width) { [self] text in
            written.withLock { $0 += text }
            onWrite(text)
        }
    }
}
