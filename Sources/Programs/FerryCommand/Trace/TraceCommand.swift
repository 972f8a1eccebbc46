import ArgumentParser
import Foundation

/// `ferry trace`: the life of each message in a capture or log.
struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the life of each message in a capture or log: chunks, acknowledgements, waits, gaps.",
        discussion: """
            Reads what ferry capture and --capture write (btsnoop), captures of HCI in pcap, what --log writes, and lines of > \
            or < for who sent a chunk, then its bytes in hexadecimal. > is what this side sent. A line that begins with = ends \
            the life of a message, one with - tells of the link: waits for ready, silences of a second and more, writes that were \
            refused. One with ! tells of what the capture does not have: packets that it cut or lost, frames that are not whole, \
            writes without an answer, and a clock that was set back, across which no durations are shown.

                ferry trace capture.btsnoop
                business-card serve --log > card.log; ferry trace card.log
                ferry send --log chunks.log --transport unix:/tmp/ferry photo.jpg; ferry trace chunks.log

            A capture holds many values. Those of the sequenced framing are found by its hello. Those of SMP, of the Nordic UART \
            service, of mobile documents (mdoc), of Matter's BTP, of Polar's PFTP, of Improv, of Meshtastic, of Gattlink and of bitchat \
            are found by the UUIDs of their characteristics, where the capture has their discovery; SMP and BTP by their first bytes too. \
            Values that are read count where the characteristic is a queue, as Meshtastic's messages from the radio are. For others, or when \
            the capture began later, name the framing and the characteristic's value handle. Values are found on ATT's fixed channel \
            and on enhanced bearers that were opened in the capture; what crosses other L2CAP channels is an app's own and \
            is not looked at. Of a log with both sides the first is shown.

            Ends with 0 when every chunk was understood, with 1 when one was not, the capture does not have all, or the file is \
            damaged.
            """)

    @Argument(help: "The file; standard input unless given, or for -.", completion: .file())
    var file: String?

    @Option(
        help: ArgumentHelp(
            "How chunks become messages: \(TraceFraming.allCases.map(\.rawValue).joined(separator: ", ")). (default: what "
                + "the log or capture says, sequenced otherwise)",
            valueName: "framing"),
        transform: { text in
            guard let framing = TraceFraming(rawValue: text) else {
                throw ValidationError(
                    "There is no framing '\(text)'. Use \(TraceFraming.allCases.map(\.rawValue).joined(separator: ", "))."
                )
            }
            return framing
        })
    var framing: TraceFraming?

    @Option(
        help: ArgumentHelp(
            "In a capture, the handle of the value that carries chunks, as 0x0003 or 3; once for each.",
            valueName: "handle"),
        transform: { text in
            let number = text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text)
            guard let number, (1...0xFFFF).contains(number) else {
                throw ValidationError("'\(text)' is no handle; give 0x0001 to 0xFFFF.")
            }
            return number
        })
    var handle: [Int] = []

    func run() throws {
        var reader = TraceReader(framing: framing, handles: Set(handle))
        let name = file.flatMap { $0 == "-" ? nil : $0 } ?? "standard input"
        do {
            try Self.read(file) { bytes in
                for line in try reader.feed(bytes) { print(line.harmless) }
            }
            for line in try reader.finish() { print(line.harmless) }
        } catch let failure as SystemFile.Failure {
            throw CommandFailure("\(name): \(failure).")
        } catch let problem as TraceReader.Problem {
            throw CommandFailure("\(name): \(problem.description)")
        }
        if let complaint = reader.complaint { throw CommandFailure("\(name): \(complaint)") }
    }

    /// Hands over a file piece by piece, as it comes.
    private static func read(_ path: String?, _ body: ([UInt8]) throws -> Void) throws {
        let input =
            try path.flatMap { $0 == "-" ? nil : $0 }.map { try SystemFile.opened($0) }
            ?? SystemFile(STDIN_FILENO, isOwned: false)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try input.readSome($0) }
            guard count > 0 else { return }
            try body(Array(buffer[..<count]))
        }
    }
}
