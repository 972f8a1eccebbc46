import ArgumentParser

/// `ferry fleet`: many gateways that share their peers.
struct Fleet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Simulates fleets of gateways that share their peers.", subcommands: [Simulate.self])
}
