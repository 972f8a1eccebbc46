import ArgumentParser

/// `ferry`: measures what a link gives, and advises on how to use it.
@main struct FerryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ferry",
        abstract: "Measures how messages cross Bluetooth LE links, and advises on how to send them.",
        subcommands: [Bench.self, Advise.self])
}
