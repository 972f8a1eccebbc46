package import Ferry
import FerrySocket

/// The TCP port at which a transport listens; nil where it does not, or not at such a port.
package func listeningPort(of transport: any Transport) -> UInt16? {
    if let sealed = transport as? ProtectedTransport { return listeningPort(of: sealed.base) }
    return (transport as? SocketTransport)?.port
}

extension TransportKind {
    /// A socket in the file system.
    static let unix = available("unix", makesAdapters: false, forms: ["unix:PATH"], parse: socket)
    /// A port of a host.
    static let tcp = available("tcp", makesAdapters: false, forms: ["tcp:HOST:PORT"], parse: socket)

    private static func socket(_ text: String) throws(FerryError) -> NamedTransport {
        let address = try SocketAddress(text)
        let transport = try SocketTransport(address)
        return NamedTransport(
            text, reachesItself: true, leavesMachine: { address.leavesMachine(isListening: $0) }, .links { transport })
    }
}
