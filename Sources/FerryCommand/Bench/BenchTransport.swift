import ArgumentParser
import Ferry
import FerryBluetooth

#if HCI
    import FerryHCI
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
            let run = try BenchRun(settings, time: SystemTime(), recordsTimeline: false) { [configuration] index in
                do throws(BluetoothError) {
                    return try await HCIAdapter.open(channels[index], configuration)
                } catch {
                    throw FerryError(.transportUnavailable, error.message)
                }
            }
            return try await run.measure()
        }
    }
#endif
