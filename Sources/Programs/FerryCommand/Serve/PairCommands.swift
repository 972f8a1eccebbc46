import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import Foundation

/// `ferry pair`: keys that are kept.
struct Pair: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Pairs with a peripheral, and keeps the keys.",
        discussion: """
            ferry pair --transport hci:user:0 --bonds keys.json Cellar
            ferry read --transport hci:user:0 --bonds keys.json Cellar 2A6E

            A number that both sides show is compared at the terminal; --no-number pairs without one, which does not protect \
            against an attacker between the two.

            Ends with 0, also when the two were paired before, 1 with the reason, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeripheralOptions

    @Argument(help: "The peripheral: its name or address.")
    var peripheral: String

    @Flag(help: "Pair without a number, where the user cannot compare one.")
    var noNumber = false

    @Option(help: ArgumentHelp("How long to look for the peripheral.", valueName: "seconds"))
    var timeout = 30.0

    func validate() throws {
        guard (0.1...86_400).contains(timeout) else {
            throw ValidationError("--timeout is \(timeout); give 0.1 to 86400 seconds.")
        }
        try options.checkBonds()
    }

    func run() async throws {
        let command = self
        try await PeripheralOptions.run {
            let adapter = try await command.options.open(agent: command.noNumber ? nil : TerminalAgent())
            guard let pairing = adapter.pairing else { throw BondOptions.unable(command.options.transport) }
            let explorer = try await Explorer.open(adapter)
            defer { explorer.close() }
            let visit = try await explorer.visit(command.peripheral, within: .seconds(command.timeout))
            do { try await pairing.pair(visit.connection.peripheral) } catch {
                await visit.end()
                throw error
            }
            let identity = visit.connection.identity
            await visit.end()
            if command.options.json {
                try Output.line(Bonds.Line(address: identity.name))
            } else {
                try Output.print("Paired with \(identity.name.forTerminal).\n")
            }
        }
    }
}

/// `ferry bonds`: whose keys are kept.
struct Bonds: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the devices whose keys are kept.",
        discussion: "ferry bonds --transport hci:user:0 --bonds keys.json")

    @OptionGroup var options: PeripheralOptions

    /// One line of `--json`.
    struct Line: Encodable { var address: String }

    func validate() throws { try options.checkBonds() }

    func run() async throws {
        let options = options
        try await PeripheralOptions.run {
            let adapter = try await options.open()
            defer { adapter.close() }
            guard let pairing = adapter.pairing else { throw BondOptions.unable(options.transport) }
            let all = await pairing.bonded()
            for (_, name) in all {
                if options.json {
                    try Output.line(Line(address: name))
                } else {
                    try Output.print("\(name.forTerminal)\n")
                }
            }
            if all.isEmpty { note("ferry: no keys are kept.") }
        }
    }
}

/// `ferry unbond`: forgets keys.
struct Unbond: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forgets the keys of a device.",
        discussion: """
            ferry unbond --transport hci:user:0 --bonds keys.json C0:FE:00:00:00:01

            The other side keeps its keys until it forgets them too, and then pairs anew. Ends with 1 where there are none.
            """)

    @OptionGroup var options: PeripheralOptions

    @Argument(help: "The device's address, as ferry bonds prints it.")
    var address: String

    func validate() throws { try options.checkBonds() }

    func run() async throws {
        let (options, address) = (options, address)
        try await PeripheralOptions.run {
            let adapter = try await options.open()
            defer { adapter.close() }
            guard let pairing = adapter.pairing else { throw BondOptions.unable(options.transport) }
            let all = await pairing.bonded()
            let typed = address.lowercased()
            let meant = all.filter {
                let name = $0.name.lowercased()
                return name == typed || name.split(separator: "/").first.map(String.init) == typed
            }
            guard let peer = meant.first?.peer else {
                let list = all.isEmpty ? "none at all" : all.map(\.name.forTerminal).joined(separator: ", ")
                throw CommandFailure("No keys of \(address.forTerminal.debugDescription) are kept. There are: \(list).")
            }
            try await pairing.forget(peer)
        }
    }
}

enum BondOptions {
    static func unable(_ transport: NamedTransport) -> CommandFailure {
        CommandFailure("\(transport) does not pair. Use hci or bluez.")
    }
}

extension PeripheralOptions {
    /// Refuses keys that would be forgotten at once.
    func checkBonds() throws {
        guard bonds != nil || transport.keepsBonds else {
            throw ValidationError("Name the file of keys with --bonds: \(transport) keeps no keys itself.")
        }
    }
}

/// A person at the terminal.
struct TerminalAgent: PairingAgent {
    func show(_ number: Int, for peer: PeerID) { note("ferry: enter \(Self.digits(number)) on the other device") }

    func compare(_ number: Int, with peer: PeerID) async -> Bool {
        note("ferry: does the other device show \(Self.digits(number))? Type y or n.")
        return await Self.line()?.lowercased().hasPrefix("y") == true
    }

    func passkey(of peer: PeerID) async -> Int? {
        note("ferry: type the six digits that the other device shows, or nothing to give up.")
        return await Self.line().flatMap { Int($0) }
    }

    private static func digits(_ number: Int) -> String {
        let text = "\(number)"
        return String(repeating: "0", count: max(0, 6 - text.count)) + text
    }

    private static func line() async -> String? { try? await SystemFile.run { readLine() } }
}
