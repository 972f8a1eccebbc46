import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports

/// What the commands that are a peripheral, or pair, all take.
struct PeripheralOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The Bluetooth adapter: \(forms.joined(separator: ", ")).", valueName: "transport"),
        transform: Self.parse)
    var transport: NamedTransport

    @Option(
        help: ArgumentHelp(
            "Keep the keys of paired devices in this file; with hci only, as bluetoothd keeps its own.",
            valueName: "file"))
    var bonds: String?

    @Flag(help: "Print JSON, one object a line, for programs.")
    var json = false

    static let forms = NamedTransport.forms { $0.makesAdapters && $0.name != "loopback" }

    private static func parse(_ text: String) throws -> NamedTransport {
        do throws(FerryError) {
            let transport = try NamedTransport.parse(text, program: "ferry", forms: forms)
            guard case .adapters = transport.opening else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(transport) is no Bluetooth adapter. Use one of: \(forms.joined(separator: ", ")).")
            }
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

    func validate() throws {
        if bonds != nil, transport.keepsBonds {
            throw ValidationError("\(transport) keeps its keys itself. Leave --bonds out.")
        }
    }

    /// How the adapter pairs: without numbers, unless a person is asked.
    func pairing(agent: (any PairingAgent)? = nil) -> RadioPairing { RadioPairing(bondFile: bonds, agent: agent) }

    /// Opens the adapter, with its pairing.
    func open(agent: (any PairingAgent)? = nil) async throws -> OpenedAdapter {
        guard case .adapters(let make) = transport.opening else {
            throw FerryError(.invalidConfiguration, "\(transport) is no Bluetooth adapter.")
        }
        var options = RadioOptions()
        options.onAdvice = { note($0) }
        options.pairing = pairing(agent: agent)
        return try await make(options)("ferry")
    }

    /// Runs the work until it ends or a signal comes. Every end has its exit status: 0, 1 with the reason, 130 after Ctrl-C.
    static func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        // Standard input may be waited for, which cannot be called off.
        let (result, signal) = await Interruptible.run(grace: 1, body)
        if let signal { throw ExitCode(128 + signal) }
        guard case .failure(let error) = result else { return }
        switch error {
        case is ExitCode, is CommandFailure: throw error
        case let error as BluetoothError: throw CommandFailure(error.words)
        default: throw CommandFailure(explanation(of: error))
        }
    }
}
