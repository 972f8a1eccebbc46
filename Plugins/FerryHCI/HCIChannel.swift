#if HCI
    public import FerryBluetooth

    /// Where an HCI controller is found.
    public enum HCIChannel: Sendable, Hashable {
        /// H4 over TCP.
        case tcp(host: String, port: Int)
        /// H4 over a Unix socket.
        case unix(path: String)

        /// What ``init(_:)`` reads, for messages.
        public static let forms = ["hci:tcp:HOST:PORT", "hci:unix:PATH"]

        /// Reads `hci:tcp:HOST:PORT` or `hci:unix:PATH`.
        ///
        /// - Throws: `invalidArgument` with what is wrong and what is accepted.
        public init(_ specification: String) throws(BluetoothError) {
            let parts = specification.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, parts[0] == "hci" else { throw Self.error(specification) }
            switch parts[1] {
            case "tcp":
                guard let colon = parts[2].lastIndex(of: ":"), colon > parts[2].startIndex,
                    let port = Int(parts[2][parts[2].index(after: colon)...]), (1...65535).contains(port)
                else { throw Self.error(specification) }
                self = .tcp(host: String(parts[2][..<colon]), port: port)
            case "unix":
                // sockaddr_un holds 108 bytes with the final zero (unix(7)).
                guard (1...107).contains(parts[2].utf8.count) else { throw Self.error(specification) }
                self = .unix(path: String(parts[2]))
            default: throw Self.error(specification)
            }
        }

        private static func error(_ specification: String) -> BluetoothError {
            BluetoothError(
                .invalidArgument,
                "\"\(specification)\" names no HCI channel. Use hci:tcp:HOST:PORT with a port of 1 to 65535, or hci:unix:PATH "
                    + "with a path of at most 107 bytes.")
        }
    }

    extension HCIChannel: CustomStringConvertible {
        /// The specification it can be made from.
        public var description: String {
            switch self {
            case .tcp(let host, let port): "hci:tcp:\(host):\(port)"
            case .unix(let path): "hci:unix:\(path)"
            }
        }
    }
#endif
