import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import FerrySequenced
import FerryTransports

/// What `ferry send` and `ferry receive` both take.
struct TransferOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What carries the bytes: \(forms.joined(separator: ", ")).", valueName: "transport"),
        transform: Self.parse)
    var transport: NamedTransport

    private static let forms = NamedTransport.forms { $0.name != "loopback" }

    enum FramingChoice: String, CaseIterable, ExpressibleByArgument {
        case length, sequenced
        var framing: any Framing { self == .length ? LengthPrefixFraming() : SequencedFraming() }
    }

    @Option(help: "How chunks become messages again; the same on both sides.")
    var framing = FramingChoice.length

    @Option(
        help: ArgumentHelp("The most bytes in a chunk. (default: what the link takes)", valueName: "bytes"),
        transform: { text in
            guard let number = Int(text), (4...65_535).contains(number) else {
                throw ValidationError("Give a number of bytes from 4 to 65535.")
            }
            return number
        })
    var chunk: Int?

    @Option(
        help: ArgumentHelp(
            "How long to wait for the other side: at the beginning, and after each loss of the connection.",
            valueName: "seconds"))
    var timeout = 60.0

    @Flag(help: "Print one JSON object a line for each event, for programs.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "Write every chunk to this file as it crosses, in place of one that is there; ferry trace reads it.",
            valueName: "file"),
        completion: .file())
    var log: String?

    @Flag(help: "Show no progress.")
    var quiet = false

    @OptionGroup(title: "Trust") var trust: TrustOptions

    func validate() throws {
        guard (0.1...86_400).contains(timeout) else {
            throw ValidationError("--timeout is \(timeout); give 0.1 to 86400 seconds.")
        }
    }

    /// Why a side that listens takes no code.
    static let codeOfListener =
        "--code is for the side that connects: a side that listens shows a code, or lets in whom 'ferry invite' has invited."

    var patience: Duration { .seconds(timeout) }

    /// E07F0AE8-00BB-47F5-94F4-4A7174EA3040 and ...3041: what files cross where links are laid over GATT.
    static let layout = GATTConfiguration(
        service: BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3040 as UInt128),
        characteristic: BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3041 as UInt128))

    static func parse(_ text: String) throws -> NamedTransport {
        do throws(FerryError) {
            let transport = try NamedTransport.parse(text, program: "ferry", forms: forms)
            guard transport.reachesOtherProcesses else {
                throw FerryError(
                    .invalidConfiguration,
                    "The \(transport) transport ends with this process, and reaches no other program. Use one of: "
                        + "\(forms.joined(separator: ", ")).")
            }
            return transport
        } catch {
            throw ValidationError(error.message)
        }
    }

    /// The transport for a role. Nothing is opened yet.
    func open(_ role: String) throws(FerryError) -> any Transport {
        try Self.open(transport, role, trust.request(program: "ferry"))
    }

    /// The same for a transport from elsewhere. Channels over its links take their framing from ``ProtectedTransport/framing(_:over:)``.
    static func open(
        _ transport: NamedTransport, _ role: String, _ trust: TrustRequest
    ) throws(FerryError) -> any Transport {
        var options = RadioOptions()
        options.onAdvice = { note($0) }
        return ProtectedTransport(try transport.open(layout, options)(role), named: transport, trust) {
            note("ferry: \($0)")
        }
    }

    func channel(over link: any Link) throws(FerryError) -> TransferChannel {
        try TransferChannel(over: try logged(link), framing: protected(over: link), chunkSize: chunk)
    }

    /// Whether the other side proves who it is: by its key, or at a Unix socket by the rights of the socket's file.
    func provesPeer(listens: Bool) -> Bool {
        transport.isSocketFile || isSealed(listening: listens)
    }

    private func isSealed(listening: Bool) -> Bool {
        trust.request(program: "ferry").isSealed(transport.leavesMachine(listening))
    }

    /// Whether it connects without a seal, and within this machine, to what may listen to a network: `tcp:localhost:7070` reaches a
    /// listener at `tcp:0.0.0.0:7070`, which wants a seal.
    var connectsPlainlyToItself: Bool { transport.isPort && !isSealed(listening: false) }

    /// The framing that was chosen, sealed where the link's transport says so.
    func protected(over link: any Link) -> any Framing { ProtectedTransport.framing(framing.framing, over: link) }

    /// Makes the log's file, before anything is waited for.
    ///
    /// - Throws: ``CommandFailure`` when it cannot be made.
    func openLog() throws {
        guard let log else { return }
        do throws(FerryError) { _ = try ChunkLogFile.shared(log, framing: framing.rawValue) } catch {
            throw CommandFailure(error.message)
        }
    }

    /// The link, with its chunks in the log where there is one.
    func logged(_ link: any Link) throws(FerryError) -> any Link {
        guard let log else { return link }
        return TappedLink(link, observer: try ChunkLogFile.shared(log, framing: framing.rawValue).observer())
    }
}
