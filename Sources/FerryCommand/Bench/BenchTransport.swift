import ArgumentParser
import Ferry
import FerryTransports

/// What `--transport` names.
enum BenchTransport: Sendable {
    case sim
    case loopback
    /// The peripheral's adapter, then one for each central.
    case adapters([NamedTransport])

    /// Whether time is virtual, and the output the same on every run.
    var isSimulated: Bool {
        if case .sim = self { true } else { false }
    }

    var name: String {
        switch self {
        case .sim: "sim"
        case .loopback: "loopback"
        case .adapters(let adapters): adapters.map(\.description).joined(separator: ",")
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
        + NamedTransport.forms { $0.makesAdapters && $0.name != "loopback" }.map { "\($0),\($0)" }

    static func parse(_ text: String) throws -> BenchTransport {
        switch text {
        case "sim": return .sim
        case "loopback": return .loopback
        default: break
        }
        do throws(FerryError) {
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
            "\(named) names no Bluetooth adapter of its own. Use one of: \(forms.joined(separator: ", ")).")
    }

    /// Refuses points for which there are not enough adapters.
    func check(_ point: BenchSettings) throws(FerryError) {
        guard case .adapters(let adapters) = self, adapters.count != 1 + point.centrals else { return }
        throw FerryError(
            .invalidConfiguration,
            "\(point.centrals) central(s) and a peripheral need \(1 + point.centrals) adapters, comma-separated; "
                + "--transport names \(adapters.count).")
    }
}
