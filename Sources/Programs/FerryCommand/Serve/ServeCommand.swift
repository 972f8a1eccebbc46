import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import Foundation

/// `ferry serve`: values, or what a program prints, as a GATT service.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Offers values as a GATT service.",
        discussion: """
            ferry serve --transport bluez --name Cellar --service 'Environmental Sensing' Temperature=int16:2150
            thermometer | ferry serve --transport bluez --service 181A --lines Temperature=int16:0 > writes

            Each characteristic can be read and subscribed to, and written with --writable. A value is hexadecimal, as --as says, \
            or names its format first: 2A29=text:Ferry, 2A19=uint8:87. With --lines each line of standard input, written as the \
            arguments are, is a new value; subscribers get the newest when they are slower. What centrals write is printed, a \
            line each, so that a program can read it.

            Ends with 1 where the adapter cannot be used, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeripheralOptions

    @Option(help: ArgumentHelp("What scans show.", valueName: "name"))
    var name = "ferry"

    @Option(help: ArgumentHelp("The service: its UUID or name.", valueName: "service"))
    var service: String

    @Argument(help: ArgumentHelp("Characteristics with their first values.", valueName: "characteristic=value"))
    var values: [String]

    @Option(name: .customLong("as"), help: ArgumentHelp("What values are that do not say it.", valueName: "format"))
    var format = ValueFormat.hex

    @Flag(help: "Let centrals write.")
    var writable = false

    @Flag(help: "Let only paired centrals read and write. See --bonds.")
    var encrypted = false

    @Flag(help: "Take new values from standard input, a line each.")
    var lines = false

    /// One line of `--json`.
    struct Line: Encodable {
        var event: String
        var characteristic: String
        var name: String?
        var hex: String?
        var value: String?
        var central: String?
    }

    func validate() throws { _ = try served() }

    private func served() throws -> ServedService.Configuration {
        do throws(BluetoothError) {
            var all: [ServedService.Value] = []
            for text in values {
                let value = try ServedService.Value(text, format)
                guard !all.contains(where: { $0.uuid == value.uuid }) else {
                    throw BluetoothError(.invalidArgument, "\(value.uuid.label) is given twice. Give it once.")
                }
                all.append(value)
            }
            return ServedService.Configuration(
                name: name, service: try AttributeName.service(service), values: all, isWritable: writable,
                isEncrypted: encrypted)
        } catch {
            throw ValidationError(error.message)
        }
    }

    func run() async throws {
        let (options, format, readsLines) = (options, format, lines)
        let served = ServedService(try served())
        try await PeripheralOptions.run {
            let adapter = try await options.open()
            defer {
                served.close()
                adapter.close()
            }
            try await served.start(on: adapter.adapter)
            note("ferry: serving \(name.forTerminal.debugDescription) on \(options.transport)")
            let reading = readsLines ? Task { try await Self.readLines(into: served, format) } : nil
            defer { reading?.cancel() }
            for await event in served.events { try Self.show(event, isJSON: options.json, format) }
            try Task.checkCancellation()
        }
    }

    private static func readLines(into served: ServedService, _ format: ValueFormat) async throws {
        var reader = LineReader()
        let input = SystemFile(STDIN_FILENO, isOwned: false)
        while let line = try await reader.next(of: input) {
            let text = String(decoding: line, as: UTF8.self)
            do { try served.update(ServedService.Value(text, format)) } catch {
                note("ferry: \(error.message)")
            }
        }
    }

    private static func show(_ event: ServedService.Event, isJSON: Bool, _ format: ValueFormat) throws {
        switch event {
        case .lost(let error): throw error
        case .wrote(let uuid, let bytes):
            let shown = (format == .hex ? .auto : format).text(bytes, of: uuid)
            let line = Line(
                event: "written", characteristic: "\(uuid)", name: uuid.name, hex: ValueFormat.hexadecimal(bytes),
                value: shown)
            if isJSON { try Output.line(line) } else { try Output.print("\(uuid.label)  \(shown.harmless)\n") }
        case .subscribed(let uuid, let central), .left(let uuid, let central):
            var isSubscribed = false
            if case .subscribed = event { isSubscribed = true }
            if isJSON {
                try Output.line(
                    Line(
                        event: isSubscribed ? "subscribed" : "unsubscribed", characteristic: "\(uuid)", name: uuid.name,
                        central: "\(central)"))
            } else {
                note("ferry: \(central) \(isSubscribed ? "subscribes to" : "has left") \(uuid.label)")
            }
        }
    }
}
