import Ferry
import FerryBluetooth
import Synchronization

#if BlueZ
    import FerryBlueZ
#endif
#if HCI
    import FerryHCI
#endif

/// A Bluetooth adapter that is not the loopback radio's, by the name that people type.
struct BenchAdapter: Sendable, CustomStringConvertible {
    /// An opened adapter, and what closes it.
    typealias Opened = (adapter: any BluetoothAdapter, close: @Sendable () -> Void)

    /// Its name.
    let description: String
    /// The ATT_MTU that it asks for, whatever an app would like; nil where an app chooses.
    let attMTU: Int?
    /// Opens it as a point's settings ask, as far as it lets an app choose.
    let open: @Sendable (BenchSettings) async throws(FerryError) -> Opened

    #if HCI
        private static let hciForms = ["hci:..."]
    #else
        private static let hciForms: [String] = []
    #endif
    #if BlueZ
        private static let blueZForms = ["bluez:hci0"]
    #else
        private static let blueZForms: [String] = []
    #endif

    /// What can be named, for help.
    static var forms: [String] { hciForms + blueZForms }

    /// The adapter of a name.
    ///
    /// - Throws: `invalidConfiguration` with what can be named.
    static func named(_ text: String) throws(FerryError) -> BenchAdapter {
        #if HCI
            if text.hasPrefix("hci:") { return try hci(text) }
        #endif
        #if BlueZ
            if text == "bluez" || text.hasPrefix("bluez:") { return bluez(text) }
        #endif
        for (prefix, trait) in [("hci", "HCI"), ("bluez", "BlueZ")] where text == prefix || text.hasPrefix(prefix + ":")
        {
            guard !forms.contains(where: { $0.hasPrefix(prefix) }) else { continue }
            throw FerryError(
                .invalidConfiguration,
                "The transport \(prefix) is not part of this build. Build with the trait \(trait): swift run --traits "
                    + "\(trait) ferry ...")
        }
        throw FerryError(
            .invalidConfiguration,
            "There is no transport '\(text)'. Use one of: \(BenchTransport.forms.joined(separator: ", ")).")
    }

    #if HCI
        /// A controller, with a host of our own.
        private static func hci(_ text: String) throws(FerryError) -> BenchAdapter {
            let channel: HCIChannel
            do throws(BluetoothError) { channel = try HCIChannel(text) } catch {
                throw FerryError(.invalidConfiguration, error.message)
            }
            return BenchAdapter(description: channel.description, attMTU: nil) {
                (settings) throws(FerryError) -> Opened in
                var configuration = HCIConfiguration()
                configuration.maximumMTU = settings.attMTU
                let interval = UInt16(clamping: Int((settings.interval / 1.25).rounded()))
                configuration.connectionInterval = interval...interval
                do throws(BluetoothError) {
                    let adapter = try await HCIAdapter.open(channel, configuration)
                    return (adapter, { adapter.close() })
                } catch {
                    throw FerryError(.transportUnavailable, error.message)
                }
            }
        }
    #endif

    #if BlueZ
        /// One that bluetoothd serves.
        private static func bluez(_ text: String) -> BenchAdapter {
            BenchAdapter(description: text, attMTU: 517) { (_) throws(FerryError) -> Opened in
                do throws(BluetoothError) {
                    let adapter = try await BlueZAdapter.open(text)
                    if let advice = adapter.advice { note("\(text): \(advice)") }
                    return (adapter, { adapter.close() })
                } catch {
                    throw FerryError(.transportUnavailable, error.message)
                }
            }
        }
    #endif
}

extension BenchRun {
    /// Measures over adapters, in real time.
    static func adapters(_ settings: BenchSettings, _ adapters: [BenchAdapter]) async throws -> BenchOutcome {
        try BenchTransport.adapters(adapters).check(settings)
        let opened = OpenedAdapters()
        let run = try BenchRun(settings, time: SystemTime(), recordsTimeline: false) { index in
            let (adapter, close) = try await adapters[index].open(settings)
            opened.add(close)
            return adapter
        }
        do {
            let outcome = try await run.measure()
            await opened.close()
            return outcome
        } catch {
            await opened.close()
            throw error
        }
    }
}

/// The adapters of one point. The next point has other settings and opens them anew.
private final class OpenedAdapters: Sendable {
    private let closers = Mutex<[@Sendable () -> Void]>([])

    func add(_ close: @escaping @Sendable () -> Void) { closers.withLock { $0.append(close) } }

    /// Closes them, and gives the other side of a channel the time to notice: most controllers serve one host at a time.
    func close() async {
        for close in closers.withLock({ $0 }) { close() }
        try? await Task.sleep(for: .milliseconds(500))
    }
}
