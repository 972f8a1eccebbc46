// swift-format-ignore-file
// The code of the article "In an iPhone or Mac app", which is compiled and run here.
import CoreBluetooth
import Ferry
import FerryBluetooth
import FerryCoreBluetooth
import FerryJSON
import FerrySequenced

struct Reading: Codable, Sendable, Equatable {
    var number: Int
    var celsius: Double
}

enum Layout {
    static func make() throws -> GATTConfiguration {
        try GATTConfiguration(
            service: BluetoothUUID("7B9F0001-5C1A-4E5D-9B1E-0A4F6E3C2D10"),
            characteristic: BluetoothUUID("7B9F0002-5C1A-4E5D-9B1E-0A4F6E3C2D10"))
    }
}

/// What the app keeps on disk: whom it talks to, and which readings it has.
actor Notebook {
    private let file: URL
    private var kept: Kept

    private struct Kept: Codable {
        var logger: String?
        var readings: [Reading] = []
    }

    init(file: URL) {
        self.file = file
        kept = (try? JSONDecoder().decode(Kept.self, from: Data(contentsOf: file))) ?? Kept()
    }

    var logger: PeerIdentity? { kept.logger.flatMap { PeerIdentity($0) } }
    var readings: [Reading] { kept.readings }

    func remember(_ logger: PeerIdentity) throws {
        kept.logger = logger.description
        try JSONEncoder().encode(kept).write(to: file, options: .atomic)
    }

    /// A reading that came a second time, because the app was ended before its peer heard that it has it, is known by its number.
    func add(_ reading: Reading) throws {
        guard reading.number > kept.readings.last?.number ?? 0 else { return }
        kept.readings.append(reading)
        try JSONEncoder().encode(kept).write(to: file, options: .atomic)
    }
}

/// Made once, when the app starts: by the app delegate, or the App's initializer.
final class RecordApp: Sendable {
    let bluetooth: CoreBluetoothAdapter
    let notebook: Notebook

    init(bluetooth: CoreBluetoothAdapter = CoreBluetoothAdapter(restorationIdentifier: "logbook"), notebook: Notebook) {
        self.bluetooth = bluetooth
        self.notebook = notebook
    }

    /// Runs for as long as the app does.
    func run() async throws {
        let radio = GATTTransport(adapter: bluetooth, configuration: try Layout.make())
        let transport = ReconnectingTransport(over: radio)
        while !Task.isCancelled {
            do {
                // The first time by a scan; then the same logger, which needs none.
                let link: any Link
                if let logger = await notebook.logger {
                    link = try await transport.connect(to: logger, timeout: .seconds(86_400))
                } else {
                    link = try await transport.connect(timeout: .seconds(60))
                }
                try await notebook.remember(link.peer)
                let channel = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
                for try await reading in channel.messages { try await notebook.add(reading) }
            } catch let error as FerryError {
                // What it says names what the person, or the app's author, has to do.
                print(error)
                try await Task.sleep(for: .seconds(1))
            }
        }
    }
}

/// The other side, in another app or on a Mac: it offers the readings from some number on.
func offerReadings(_ readings: [Reading], on bluetooth: any BluetoothAdapter) async throws {
    let transport = ReconnectingTransport(over: GATTTransport(adapter: bluetooth, configuration: try Layout.make()))
    let listener = try await transport.listen()
    defer { listener.close() }
    // Each phone by itself: one that is gone for a while keeps its session.
    await withDiscardingTaskGroup { group in
        for await link in listener.links {
            group.addTask {
                do {
                    let channel = try MessageChannel(over: link, codec: JSONCodec<Reading>(), framing: SequencedFraming())
                    // Each send returns when the phone has taken the reading.
                    for reading in readings { try await channel.send(reading) }
                    // The phone ends it.
                    for try await _ in channel.messages {}
                } catch { print(error) }
            }
        }
    }
}

/// AccessorySetupKit's picker has added an accessory: the app talks to it from now on, and never scans.
func accessoryWasAdded(_ bluetoothIdentifier: UUID, to notebook: Notebook) async throws {
    try await notebook.remember(CoreBluetoothAdapter.identity(of: bluetoothIdentifier))
}
