import ArgumentParser
import Ferry
import FerryTransports

/// What all three commands take.
struct CardOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The card to send: a JSON, property list or vCard 4.0 file.", valueName: "file"))
    var card: String?

    @Option(
        help: ArgumentHelp(
            "Where to save the card that arrives: as JSON, property list or vCard 4.0 by the extension .json, .plist "
                + "or .vcf.", valueName: "file"))
    var save: String?

    @Option(
        help: ArgumentHelp(
            "How chunks become a message again: by an end-of-message marker, by a length before it, or by numbers on "
                + "the chunks, which are acknowledged and sent again when lost.",
            valueName: "eom|length|sequenced"))
    var framing = FramingChoice.eom

    @Option(help: ArgumentHelp("How the card becomes bytes.", valueName: "json|cbor|plist|xml"))
    var codec = CodecChoice.json

    @Flag(help: "Compress the message where that makes it smaller.")
    var compress = false

    @Option(
        help: ArgumentHelp(
            "The most bytes in a chunk, up to 512. (default: 20 with eom, what the link takes otherwise)",
            valueName: "bytes"),
        transform: NumberArgument.chunkSize)
    var chunk: Int?

    @Option(
        parsing: .unconditional,  // the value begins with a minus
        help: ArgumentHelp(
            "Connect only when the signal strength is within this window, such as -32...-15.", valueName: "dBm...dBm"),
        transform: SignalWindow.parse)
    var rssi: ClosedRange<Int>?

    @Flag(help: "Show each chunk as it is sent; in a pipe or a file whole, for ferry trace.")
    var log = false

    @Option(
        help: ArgumentHelp("How long to wait at most, at each step. (default: 30)", valueName: "seconds"),
        transform: NumberArgument.timeout)
    var timeout = Duration.seconds(30)

    @Option(
        help: ArgumentHelp(
            "The virtual radio's connection interval: 1 to 4000, or 0 for no pause at all. (default: 7.5)",
            valueName: "milliseconds"),
        transform: NumberArgument.connectionInterval)
    var interval = Duration.microseconds(7500)

    @Option(
        help: ArgumentHelp(
            "What carries the chunks: \(NamedTransport.forms().joined(separator: ", ")). (default: loopback)",
            valueName: "transport"),
        transform: {
            do throws(FerryError) { return try NamedTransport.parse($0, program: "business-card") } catch {
                throw ValidationError(error.message)
            }
        })
    var transport = NamedTransport.loopback

    @Option(
        help: ArgumentHelp(
            "Capture all HCI packets to a file that Wireshark reads, on an hci transport.", valueName: "file"))
    var capture: String?

    @OptionGroup(title: "Trust") var trust: TrustOptions

    /// Refuses what cannot work together before anything happens.
    func validate() throws {
        if capture != nil, !transport.canCapture {
            throw ValidationError(
                "--capture takes HCI packets, and the \(transport) transport has none. Use it with --transport hci:..."
            )
        }
        do {
            _ = try framing.make(chunkSize: chunk)
            if let save { _ = try CardFile.format(forSaving: save) }
        } catch let error as FerryError {
            throw ValidationError("--chunk: \(error.message)")
        } catch let error as CardError {
            throw ValidationError("--save: \(error)")
        }
    }
}

/// Numbers as arguments. The parser puts the value and the option's name before these messages.
enum NumberArgument {
    static func chunkSize(_ text: String) throws -> Int {
        guard let number = Int(text), (1...512).contains(number) else {
            throw ValidationError("Give a number of bytes from 1 to 512.")
        }
        return number
    }

    static func timeout(_ text: String) throws -> Duration {
        guard let number = Double(text), (0.001...86_400).contains(number) else {
            throw ValidationError("Give a number of seconds from 0.001 to 86400.")
        }
        return .nanoseconds(Int64(number * 1e9))
    }

    static func connectionInterval(_ text: String) throws -> Duration {
        guard let number = Double(text), number == 0 || (1...4000).contains(number) else {
            throw ValidationError(
                "Give 1 to 4000 milliseconds (Bluetooth's own intervals begin at 7.5), or 0 for no pause at all.")
        }
        return .nanoseconds(Int64(number * 1e6))
    }
}

/// Signal-strength windows as arguments: `-32...-15`.
enum SignalWindow {
    /// What controllers can report (Core Specification 5.4, Vol 4, Part E, 7.5.4).
    static let legal = -127...20

    static func parse(_ text: String) throws -> ClosedRange<Int> {
        let bounds = text.split(separator: "...", omittingEmptySubsequences: false).map { Int($0) }
        guard bounds.count == 2, let low = bounds[0], let high = bounds[1], low <= high, legal.contains(low),
            legal.contains(high)
        else {
            throw ValidationError(
                "Give two signal strengths in dBm, the weaker first, such as -32...-15. Both are from "
                    + "\(legal.lowerBound) to \(legal.upperBound).")
        }
        return low...high
    }
}
