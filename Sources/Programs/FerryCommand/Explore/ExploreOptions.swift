import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import Foundation

/// What the commands that look at peripherals all take.
struct ExploreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The Bluetooth adapter: \(forms.joined(separator: ", ")). loopback is a demonstration in this process.",
            valueName: "transport"),
        transform: Self.parse)
    var transport: NamedTransport

    @Flag(help: "Print JSON, one object a line, for programs.")
    var json = false

    @Option(
        help: ArgumentHelp(
            "The file with the keys of paired devices, as ferry pair makes it; with hci only.", valueName: "file"))
    var bonds: String?

    func validate() throws {
        if bonds != nil, transport.keepsBonds || !transport.reachesOtherProcesses {
            throw ValidationError("\(transport) takes no file of keys. Leave --bonds out.")
        }
    }

    static let forms = NamedTransport.forms { $0.makesAdapters }

    private static func parse(_ text: String) throws -> NamedTransport {
        do throws(FerryError) {
            let transport = try NamedTransport.parse(text, program: "ferry", forms: forms)
            guard case .adapters = transport.opening else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(transport) is no Bluetooth adapter, and has no services. Use one of: "
                        + "\(forms.joined(separator: ", ")).")
            }
            return transport
        } catch {
            throw ValidationError(error.message)
        }
    }

    /// Opens the adapter, runs the work, and gives the adapter back. Every end has its exit status: 0, 1 with the reason,
    /// 130 after Ctrl-C.
    func run(_ body: @escaping @Sendable (Explorer) async throws -> Void) async throws {
        let (result, signal) = await Interruptible.run {
            let explorer = try await Explorer.open(
                transport, pairing: bonds.map { RadioPairing(bondFile: $0) })
            do { try await body(explorer) } catch {
                explorer.close()
                throw error
            }
            explorer.close()
        }
        if let signal { throw ExitCode(128 + signal) }
        if case .failure(let error) = result {
            if error is ExitCode { throw error }
            throw CommandFailure(Self.words(for: error))
        }
    }

    private static func words(for error: any Error) -> String {
        switch error {
        case let error as BluetoothError: error.words
        default: explanation(of: error)
        }
    }
}

extension BluetoothError {
    /// The message; of what a peer refuses, the specification's words for it.
    var words: String {
        code.attError.map { "The peripheral refuses: \($0). \($0.explanation)" } ?? message
    }
}

/// What the commands that connect to a peripheral take as well.
struct PeerOptions: ParsableArguments {
    @OptionGroup var explore: ExploreOptions

    @Option(
        help: ArgumentHelp("How long to look for the peripheral and wait for its connection.", valueName: "seconds"))
    var timeout = 15.0

    @Argument(help: "The peripheral: its name, or its address as ferry scan prints it.")
    var peripheral: String

    func validate() throws {
        guard (0.1...3600).contains(timeout) else {
            throw ValidationError("--timeout is \(timeout); give 0.1 to 3600 seconds.")
        }
    }

    /// Connects, runs the work, and disconnects.
    func run(_ body: @escaping @Sendable (Visit) async throws -> Void) async throws {
        try await explore.run { explorer in
            let visit = try await explorer.visit(peripheral, within: .seconds(timeout))
            do {
                try await withTaskCancellationHandler {
                    try await body(visit)
                } onCancel: {
                    visit.connection.disconnect()  // which ends every request that waits
                }
            } catch {
                await visit.end()
                throw error
            }
            await visit.end()
        }
    }
}

extension ValueFormat: ExpressibleByArgument {}

/// Standard output, at once, for people at a pipe.
enum Output {
    static func print(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            // The reader has all that it wants, as `head` has, and nothing is left to do.
            if count < 0, errno == EPIPE { throw ExitCode.success }
            guard count >= 0 else { throw CommandFailure(StandardOutput.problem) }
            rest = rest.dropFirst(count)
        }
    }

    /// One object in a line, with its keys in order.
    static func line<Value: Encodable>(_ value: Value) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try print(String(decoding: try encoder.encode(value), as: UTF8.self).harmlessJSON + "\n")
    }
}
