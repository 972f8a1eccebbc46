import Ferry
import FerryLoopback

extension TransportKind {
    /// A virtual radio within the process.
    static let loopback = available("loopback", forms: ["loopback"]) { (text) throws(FerryError) in
        guard text == "loopback" else {
            throw FerryError(.invalidConfiguration, "The virtual radio has no address: use loopback alone.")
        }
        return .loopback
    }
}

extension NamedTransport {
    /// A virtual radio within the process: only the transports of one opening hear one another.
    package static let loopback = NamedTransport(
        "loopback", reachesOtherProcesses: false, reachesItself: true,
        .adapters { (options) throws(FerryError) in
            let radio = try LoopbackRadio(configuration: options.virtualRadio)
            return { (role) throws(FerryError) in OpenedAdapter(radio.makeAdapter(name: role)) }
        })
}
