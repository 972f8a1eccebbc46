#if HCI
    public import FerryBluetooth

    /// Where an HCI controller is found.
    public enum HCIChannel: Sendable, Hashable {
        /// H4 over TCP.
        case tcp(host: String, port: Int)
        /// H4 over a Unix socket.
        case unix(path: String)
        /// H4 over a serial line or a pseudo-terminal, at `speed` bits a second, with RTS and CTS.
        case serial(path: String, speed: Int)
        /// A Bluetooth adapter of this Linux machine, by its number: exclusively, with nothing of the kernel's host. It
        /// must be down, and the process needs CAP_NET_ADMIN.
        case user(device: UInt16)

        /// What ``init(_:)`` reads, for messages.
        public static let forms = [
            "hci:tcp:HOST:PORT", "hci:unix:PATH", "hci:serial:PATH[,SPEED]", "hci:user:NUMBER",
        ]

        /// Reads `hci:tcp:HOST:PORT`, `hci:unix:PATH`, `hci:serial:PATH,SPEED` (115200 bits a second unless given) or
        /// `hci:user:NUMBER`.
        ///
        /// - Throws: `invalidArgument` with the defect and the accepted forms.
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
            case "serial":
                let comma = parts[2].lastIndex(of: ",")
                let path = parts[2][..<(comma ?? parts[2].endIndex)]
                let speed = comma.map { Int(parts[2][parts[2].index(after: $0)...]) } ?? 115_200
                guard !path.isEmpty, let speed else { throw Self.error(specification) }
                self = .serial(path: String(path), speed: speed)
            case "user":
                guard let device = UInt16(parts[2]), device < .max else { throw Self.error(specification) }
                self = .user(device: device)
            default: throw Self.error(specification)
            }
        }

        private static func error(_ specification: String) -> BluetoothError {
            BluetoothError(
                .invalidArgument,
                "\"\(specification)\" names no HCI channel. Use hci:tcp:HOST:PORT with a port of 1 to 65535, hci:unix:PATH "
                    + "with a path of at most 107 bytes, hci:serial:PATH,SPEED with a speed in bits a second, or "
                    + "hci:user:NUMBER for an adapter of this machine.")
        }
    }

    extension HCIChannel: CustomStringConvertible {
        /// The specification it can be made from.
        public var description: String {
            switch self {
            case .tcp(let host, let port): "hci:tcp:\(host):\(port)"
            case .unix(let path): "hci:unix:\(path)"
            case .serial(let path, let speed): "hci:serial:\(path),\(speed)"
            case .user(let device): "hci:user:\(device)"
            }
        }
    }
#endif
