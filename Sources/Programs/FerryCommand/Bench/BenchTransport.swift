import ArgumentParser
import Ferry
import FerryLab
import FerryTransports

/// What `--transport` names.
enum BenchTransport: Sendable {
    case sim
    case loopback
    /// The peripheral's adapter, then one for each central.
    case adapters([NamedTransport])
    /// One side's, for `--serve` and `--connect`.
    case side(NamedTransport)

    /// Whether time is virtual, and the output the same on every run.
    var isSimulated: Bool {
        if case .sim = self { true } else { false }
    }

    var name: String {
        switch self {
        case .sim: "sim"
        case .loopback: "loopback"
        case .adapters(let adapters): adapters.map(\.description).joined(separator: ",")
        case .side(let transport): transport.description
        }
    }

    /// The ATT_MTUs to measure unless others are asked for.
    var defaultMTUs: [Int] {
        if case .adapters(let adapters) = self, let only = adapters.lazy.compactMap(\.attMTU).first { return [only] }
        return [23, 185, 247, 517]
    }

    /// What can be named, for help.
    static let forms =
        ["sim", "loopback"]
        + NamedTransport.forms { $0.makesAdapters && $0.name != "loopback" }.compactMap(pair)

    /// Two adapters in the words for one; nil where these name a single one.
    private static func pair(_ form: String) -> String? {
        guard form.contains(":") else { return nil }
        return form.contains("hciN") ? "bluez:hci0,bluez:hci1" : "\(form),\(form)"
    }

    static func parse(_ text: String) throws -> BenchTransport {
        switch text {
        case "sim": return .sim
        case "loopback": return .loopback
        default: break
        }
        do throws(FerryError) {
            if !text.contains(",") {
                let named = try NamedTransport.parse(text, program: "ferry", forms: forms)
                guard named.reachesOtherProcesses else { throw noAdapter(named) }
                return .side(named)
            }
            var adapters: [NamedTransport] = []
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                let named = try NamedTransport.parse(String(part), program: "ferry", forms: forms)
                guard case .adapters = named.opening, named.reachesOtherProcesses else { throw noAdapter(named) }
                adapters.append(named)
            }
            return .adapters(adapters)
        } catch {
            throw ValidationError(error.message)
        }
    }

    static func noAdapter(_ named: NamedTransport) -> FerryError {
        FerryError(
            .invalidConfiguration,
            "\(named) names no single Bluetooth adapter. Use one of: \(forms.joined(separator: ", ")).")
    }

    /// Refuses points for which there are not enough adapters.
    func check(_ point: BenchSettings) throws(FerryError) {
        let adapters: [NamedTransport]
        switch self {
        case .sim, .loopback: return
        case .adapters(let several): adapters = several
        case .side(let only):
            guard case .adapters = only.opening else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(only) has two ends in two processes: give --serve to one and --connect to the other. In one process "
                        + "use one of: \(Self.forms.joined(separator: ", ")).")
            }
            adapters = [only]
        }
        guard adapters.count != 1 + point.centrals else { return }
        throw FerryError(
            .invalidConfiguration,
            "\(point.centrals) central(s) and a peripheral need \(1 + point.centrals) adapters, comma-separated; "
                + "--transport names \(adapters.count). One adapter alone can be one side: --serve, or --connect.")
    }
}
