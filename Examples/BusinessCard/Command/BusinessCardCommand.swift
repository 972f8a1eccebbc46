import ArgumentParser
import Ferry
import FerryTransports

/// Both roles in one process, unless a subcommand picks one.
@main
struct BusinessCardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "business-card",
        abstract: "Sends a business card across a small link, chunk by chunk.",
        usage: "business-card [serve | receive] [<options>]",
        discussion: """
            Without a subcommand, server and client are both in this process, at the two ends of a virtual Bluetooth \
            radio: the card is encoded, cut into chunks, sent as notifications as fast as the radio takes them, put \
            together again and compared.

            serve and receive are the two roles, one to a process. They need a transport that reaches another process.
            """,
        version: FerryVersion.text,
        subcommands: [ServeCommand.self, ReceiveCommand.self])

    @OptionGroup var options: CardOptions

    func run() async throws {
        try options.requireOneProcess()
        try await Runner.run { console in
            let card = try options.loadCard() ?? .example
            try await options.roles(console).exchange(card, savingTo: options.save)
        }
    }
}

/// The server's role.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Hands the card to everybody who comes; with --save, takes theirs.",
        usage: "business-card serve [<options>]")

    @OptionGroup var options: CardOptions

    func validate() throws {
        try options.requireOtherProcesses(for: "serve")
        guard options.trust.code == nil else {
            throw ValidationError("--code is for business-card receive, which connects: this side shows a code.")
        }
    }

    func run() async throws {
        try await Runner.run { console in
            let card = try options.loadCard() ?? .example
            let transport = try options.open("server")
            try await options.roles(console).serve(card, over: transport, savingTo: options.save)
        }
    }
}

/// The client's role.
struct ReceiveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "receive", abstract: "Takes a card from a server; with --card, sends one back.",
        usage: "business-card receive [<options>]")

    @OptionGroup var options: CardOptions

    func validate() throws {
        try options.requireOtherProcesses(for: "receive")
        try options.transport.requireConnectable()
    }

    func run() async throws {
        try await Runner.run { console in
            let card = try options.loadCard()
            let transport = try options.open("client")
            try await options.roles(console).receive(over: transport, reply: card, savingTo: options.save)
        }
    }
}

extension CardOptions {
    /// Reads the card, after making sure that what arrives can be saved.
    func loadCard() throws(CardError) -> Card? {
        if let save { try CardFile.checkDestination(save) }
        guard let card else { return nil }
        return try CardFile.load(card)
    }

    var recipe: Recipe { Recipe(framing: framing, codec: codec, compresses: compress, chunkSize: chunk) }

    var radio: RadioSettings { RadioSettings(interval: interval, chunkSize: chunk ?? 20, rssi: rssi, capture: capture) }

    func roles(_ console: Console) -> Roles {
        Roles(
            transport: transport, radio: radio, recipe: recipe, timeout: timeout, showsChunks: log, console: console)
    }

    /// The transport for a role, whose channels are sealed where that is needed or asked for.
    func open(_ role: String) throws(FerryError) -> any Transport {
        ProtectedTransport(
            try radio.open(transport)(role), named: transport, trust.request(program: "business-card")
        ) { Console.complain($0) }
    }

    /// Refuses a role alone on a transport that ends with the process.
    func requireOtherProcesses(for role: String) throws {
        guard !transport.reachesOtherProcesses else { return }
        let others = NamedTransport.forms { $0.name != transport.description }
        let help = "Choose one that leaves it with --transport: \(others.joined(separator: ", "))."
        throw ValidationError(
            "\(role) would meet no peer: the \(transport) transport is a virtual radio within one process. \(help) "
                + "Run business-card without a subcommand to see both roles at once.")
    }

    /// Refuses both roles at once on a transport whose one adapter does not hear itself.
    func requireOneProcess() throws {
        guard !trust.sealed, trust.code == nil, trust.peer == nil, trust.remember == nil else {
            throw ValidationError(
                "Both sides are this process, and have nothing to prove to each other. Use business-card serve and business-card receive."
            )
        }
        guard !transport.reachesItself else { return }
        throw ValidationError(
            "\(transport) is one Bluetooth controller, and it does not hear itself. Run business-card serve on one "
                + "controller and business-card receive on another.")
    }
}
