import ArgumentParser
import Ferry
import FerryBluetooth
import Foundation

/// `ferry scan`: which peripherals there are.
struct Scan: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the peripherals that advertise nearby.",
        discussion: """
            ferry scan --transport loopback                     # a demonstration, without a radio
            ferry scan --transport bluez --service "Heart Rate" --rssi -70

            On a terminal the table is drawn anew while the scan goes on; elsewhere it is printed at the end. RSSI is averaged; \
            AGE is how long ago the peripheral was heard. With --json each peripheral is a line when it is first heard, and \
            again when it advertises something else.

            Ends with 0, with 1 where the adapter cannot be used, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: ExploreOptions

    @Option(help: ArgumentHelp("How long to listen.", valueName: "seconds"))
    var seconds = 10.0

    @Option(help: ArgumentHelp("Only peripherals with this in their names.", valueName: "text"))
    var name: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Only peripherals heard at least this strongly, -127 to 20 dBm.", valueName: "dBm"))
    var rssi: Int?

    @Option(
        help: ArgumentHelp(
            "Only peripherals that advertise this service: a UUID, or its name. Can be given several times.",
            valueName: "service"),
        transform: Self.service)
    var service: [BluetoothUUID] = []

    private static func service(_ text: String) throws -> BluetoothUUID {
        do throws(BluetoothError) { return try AttributeName.service(text) } catch {
            throw ValidationError(error.message)
        }
    }

    func validate() throws {
        guard (0.1...86_400).contains(seconds) else {
            throw ValidationError("--seconds is \(seconds); give 0.1 to 86400.")
        }
        if let rssi, !(-127...20).contains(rssi) {
            throw ValidationError("--rssi is \(rssi); give -127 to 20 dBm.")
        }
    }

    /// One line of `--json`.
    struct Line: Encodable {
        var seconds: Double
        var address: String
        var name: String?
        var rssi: Int
        var services: [String]
        var serviceNames: [String]
        var isConnectable: Bool
        var txPower: Int?
        var manufacturerData: String?
        var serviceData: [String: String]

        init(_ discovery: Discovery, after elapsed: Duration) {
            let advertisement = discovery.advertisement
            seconds = (elapsed / .milliseconds(1)).rounded() / 1000
            address = discovery.identity.name
            name = advertisement.localName
            rssi = discovery.rssi
            services = advertisement.services.map(\.description)
            serviceNames = advertisement.services.compactMap(\.name)
            isConnectable = advertisement.isConnectable
            txPower = advertisement.txPower
            manufacturerData = advertisement.manufacturerData.map(ValueFormat.hexadecimal)
            serviceData = Dictionary(
                uniqueKeysWithValues: advertisement.serviceData.map {
                    ($0.key.description, ValueFormat.hexadecimal($0.value))
                })
        }
    }

    func run() async throws {
        let options = options
        let filter = ScanTable.Filter(name: name, rssi: rssi, services: service)
        let duration = Duration.seconds(seconds)
        try await options.run { explorer in
            if options.json {
                try await Self.list(explorer, filter, duration)
            } else {
                try await Self.show(explorer, filter, duration)
            }
        }
    }

    private static func list(_ explorer: Explorer, _ filter: ScanTable.Filter, _ duration: Duration) async throws {
        let start = explorer.time.now
        try await explorer.scan(ScanRequest(services: filter.services), for: duration) { event in
            if case .heard(let discovery, let now) = event, filter.takes(discovery) {
                try Output.line(Line(discovery, after: now - start))
            }
            return true
        }
    }

    private static func show(_ explorer: Explorer, _ filter: ScanTable.Filter, _ duration: Duration) async throws {
        var table = ScanTable(filter)
        var screen = LiveScreen()
        let request = ScanRequest(services: filter.services, allowsDuplicates: true)
        do {
            try await explorer.scan(request, for: duration, tick: screen.isShown ? .milliseconds(500) : nil) { event in
                switch event {
                case .heard(let discovery, let now): table.hear(discovery, at: now)
                case .tick:
                    try screen.draw(table.lines(at: explorer.time.now, width: screen.width, height: screen.height))
                case .lost: break
                }
                return true
            }
        } catch {
            try? screen.end(with: table.lines(at: explorer.time.now))
            throw error
        }
        try screen.end(with: table.lines(at: explorer.time.now))
        if table.size == 0 { note("ferry: no peripheral was heard that was asked for.") }
        if table.forgotten > 0 {
            note("ferry: \(table.forgotten) more were heard; the table holds \(ScanTable.maximumRows).")
        }
    }
}

/// Lines on a terminal that are drawn over one another.
struct LiveScreen {
    /// Whether standard output is a terminal.
    let isShown = isatty(STDOUT_FILENO) != 0
    private var drawn = 0

    var width: Int { TerminalWidth.limit(STDOUT_FILENO) }
    var height: Int { TerminalWidth.size(STDOUT_FILENO).rows - 1 }

    mutating func draw(_ lines: [String]) throws {
        try Output.print(back + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
        drawn = lines.count
    }

    /// Leaves the lines where they are, whole.
    mutating func end(with lines: [String]) throws {
        try Output.print((isShown ? back + "\u{1B}[J" : "") + lines.map { $0 + "\n" }.joined())
        drawn = 0
    }

    private var back: String { drawn > 0 ? "\u{1B}[\(drawn)A\r" : "" }
}
