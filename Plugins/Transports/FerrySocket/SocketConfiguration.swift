import Ferry

/// How sockets are used.
public struct SocketConfiguration: Sendable, Hashable {
    /// The most bytes that a format of chunks over sockets allows.
    public static let largestChunk = 65_535

    /// The most bytes of a chunk that is sent, 1 to ``largestChunk``; what arrives may be longer. Default 32 768. Set it to
    /// 182, say, to see how messages cross a Bluetooth LE connection with an ATT_MTU of 185.
    public var maximumChunkSize = 32_768

    /// The permissions of a Unix socket's file. Default 0600: only the same user connects.
    public var permissions: UInt16 = 0o600

    /// How long ``/Ferry/Link/close()`` waits for the peer to take the sent chunks. Default 5 s.
    public var linger = Duration.seconds(5)

    /// How long a silent TCP connection may be dead before it is noticed, at least 4 s. Default 30 s: by keepalive while
    /// nothing is sent, and, on Linux, by `TCP_USER_TIMEOUT` while something is. Unix sockets notice at once.
    public var deadPeerTimeout = Duration.seconds(30)

    /// How long a link may wait to be taken from the listener. Default 30 s.
    public var acceptTimeout = Duration.seconds(30)

    /// The defaults.
    public init() {}

    func check() throws(FerryError) {
        guard (1...Self.largestChunk).contains(maximumChunkSize) else {
            throw FerryError(
                .invalidConfiguration,
                "SocketConfiguration.maximumChunkSize is \(maximumChunkSize); it must be 1 to \(Self.largestChunk).")
        }
        guard permissions <= 0o777 else {
            throw FerryError(
                .invalidConfiguration,
                "SocketConfiguration.permissions is 0\(String(permissions, radix: 8)); it must be 0 to 0777.")
        }
        guard deadPeerTimeout >= .seconds(4), deadPeerTimeout <= .seconds(86_400) else {
            throw FerryError(
                .invalidConfiguration,
                "SocketConfiguration.deadPeerTimeout is \(deadPeerTimeout); it must be 4 s to a day.")
        }
    }
}
