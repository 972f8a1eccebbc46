import Ferry
import FerrySocket

extension TransportKind {
    /// A socket in the file system.
    static let unix = available("unix", makesAdapters: false, forms: ["unix:PATH"], parse: socket)
    /// A port of a host.
    static let tcp = available("tcp", makesAdapters: false, forms: ["tcp:HOST:PORT"], parse: socket)

    private static func socket(_ text: String) throws(FerryError) -> NamedTransport {
        let transport = try SocketTransport(SocketAddress(text))
        return NamedTransport(text, reachesItself: true, .links { transport })
    }
}
