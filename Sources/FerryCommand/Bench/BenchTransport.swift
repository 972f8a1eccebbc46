import ArgumentParser
import Ferry
import FerryBluetooth

#if HCI
    import FerryHCI
    import Synchronization
#endif

/// What `--transport` names.
enum BenchTransport: Sendable, Equatable {
    case sim
    case loopback
    #if HCI
        /// The peripheral's controller, then one for each central.
        case hci([HCIChannel])
    #endif

    var name: String {
        switch self {
        case .sim: "sim"
        case .loopback: "loopback"
        #if HCI
            case .hci(let channels): channels.map(\.description).joined(separator: ",")
        #endif
        }
    }

    /// What can be named, for help.
    static var forms: [String] {
        #if HCI
            ["sim", "loopback", "hci:...,hci:... (the peripheral's controller and the central's)"]
        #else
            ["sim", "loopback"]
        #endif
    }

    static func parse(_ text: String) throws -> BenchTransport {
        switch text {
        case "sim": return .sim
        case "loopback": return .loopback
        default: break
        }
        guard text.hasPrefix("hci:") else {
            throw ValidationError("There is no such transport. Use one of: \(forms.joined(separator: ", ")).")
        }
        #if HCI
            do throws(BluetoothError) {
                var channels: [HCIChannel] = []
                for part in text.split(separator: ",") { channels.append(try HCIChannel(String(part))) }
                return .hci(channels)
            } catch {
                throw ValidationError(error.message)
            }
        #else
            throw ValidationError(
                "HCI transports are not part of this build. Build with the trait HCI: swift run --traits HCI ferry ...")
        #endif
    }

    /// Refuses points for which there are not enough controllers.
    func check(_ point: BenchSettings) throws(FerryError) {
        #if HCI
            guard case .hci(let channels) = self, channels.count != 1 + point.centrals else { return }
            throw FerryError(
                .invalidConfiguration,
                "\(point.centrals) central(s) and a peripheral need \(1 + point.centrals) HCI controllers, comma-separated; "
                    + "--transport names \(channels.count).")
        #endif
    }
}

#if HCI
    extension BenchRun {
        /// Measures over controllers, in real time.
        static func hci(_ settings: BenchSettings, _ channels: [HCIChannel]) async throws -> BenchOutcome {
            try BenchTransport.hci(channels).check(settings)
            var configuration = HCIConfiguration()
            configuration.maximumMTU = settings.attMTU
            let interval = UInt16(clamping: Int((settings.interval / 1.25).rounded()))
            configuration.connectionInterval = interval...interval
            let opened = OpenedAdapters()
            let run = try BenchRun(settings, time: SystemTime(), recordsTimeline: false) { [configuration] index in
                do throws(BluetoothError) {
                    let adapter = try await HCIAdapter.open(channels[index], configuration)
                    opened.add(adapter)
                    return adapter
                } catch {
                    throw FerryError(.transportUnavailable, error.message)
                }
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

    /// The adapters of one point. The next point has other settings and opens the same channels anew.
    private final class OpenedAdapters: Sendable {
        private let adapters = Mutex<[HCIAdapter]>([])

        func add(_ adapter: HCIAdapter) { adapters.withLock { $0.append(adapter) } }

        /// Closes them, and gives the controllers' side the time to notice: most serve one host at a time.
        func close() async {
            for adapter in adapters.withLock({ $0 }) { adapter.close() }
            try? await Task.sleep(for: .milliseconds(500))
        }
    }
#endif
