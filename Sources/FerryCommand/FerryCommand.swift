import ArgumentParser

/// `ferry`: measures what a link gives, advises on how to use it, and makes and reads captures.
@main struct FerryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ferry",
        abstract: "Measures how messages cross Bluetooth LE links, and advises on how to send them.",
        subcommands: [Bench.self, Advise.self, Trace.self, Capture.self])
}
