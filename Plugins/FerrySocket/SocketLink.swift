import Ferry

/// A link over one connected socket. It is closed when nobody refers to it any more.
final class SocketLink: Link {
    let peer: PeerIdentity
    let role: LinkRole?
    private let connection: SocketConnection

    init(_ connection: SocketConnection, peer: PeerIdentity, role: LinkRole) {
        self.role = role
        self.connection = connection
        self.peer = peer
    }

    deinit { connection.close() }

    var maximumChunkSize: Int { connection.maximumChunkSize }
    func activate(_ receiver: any LinkReceiver) { connection.activate(receiver) }
    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { try connection.trySend(chunk) }
    func setReceiving(_ isReceiving: Bool) { connection.setReceiving(isReceiving) }
    func close() { connection.close() }
}
