import ArgumentParser
import Ferry

/// What `--transport` names.
enum BenchTransport: Sendable {
    case sim
    case loopback
    /// The peripheral's adapter, then one for each central.
    case adapters([BenchAdapter])

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
    static let forms = ["sim", "loopback"] + BenchAdapter.forms.map { "\($0),\($0)" }

    static func parse(_ text: String) throws -> BenchTransport {
        switch text {
        case "sim": return .sim
        case "loopback": return .loopback
        default: break
        }
        do throws(FerryError) {
            var adapters: [BenchAdapter] = []
            for part in text.split(separator: ",", omittingEmptySubsequences: false) {
                adapters.append(try BenchAdapter.named(String(part)))
            }
            return .adapters(adapters)
        } catch {
            throw ValidationError(error.message)
        }
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
