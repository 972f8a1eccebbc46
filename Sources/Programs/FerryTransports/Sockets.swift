package import Ferry
import FerrySocket

extension NamedTransport {
    /// Whether it is a socket in the file system, where the file's rights say who may connect.
    package var isSocketFile: Bool { socket?.isFile == true }

    /// Whether it is a port of a host.
    package var isPort: Bool { socket?.port != nil }

    /// The name at which the other side finds a listener; `nil` where that is the name that was typed. With port 0 the system has chosen
    /// another.
    ///
    /// - Parameter transport: the transport that listens, made by this one.
    package func chosenName(listening transport: any Transport) -> String? {
        guard let socket, socket.port == 0 else { return nil }
        let base = (transport as? ProtectedTransport)?.base ?? transport
        return (base as? SocketTransport)?.port.map { "\(socket.at(port: $0))" }
    }
}

extension TransportKind {
    /// A socket in the file system.
    static let unix = available("unix", makesAdapters: false, forms: ["unix:PATH"], parse: socket)
    /// A port of a host.
    static let tcp = available("tcp", makesAdapters: false, forms: ["tcp:HOST:PORT"], parse: socket)

    private static func socket(_ text: String) throws(FerryError) -> NamedTransport {
        let address = try SocketAddress(text)
        let transport = try SocketTransport(address)
        return NamedTransport(text, reachesItself: true, socket: address, .links { transport })
    }
}
