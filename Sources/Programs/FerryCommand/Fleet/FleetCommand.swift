import ArgumentParser

/// `ferry fleet`: many gateways that share their peers.
struct Fleet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells of fleets of gateways that share their peers, and simulates them.",
        subcommands: subcommands)

    #if NATS && Records
        private static let subcommands: [any ParsableCommand.Type] = [
            Status.self, Peers.self, Records.self, Simulate.self,
        ]
    #else
        private static let subcommands: [any ParsableCommand.Type] = [Simulate.self]
    #endif
}
