import Ferry

/// A link over one connected socket. Closed when its last reference is released.
final class SocketLink: Link {
    let peer: PeerIdentity
    let role: LinkRole?
    let source: LinkSource
    private let connection: SocketConnection

    /// - Parameter source: nil for the peer.
    init(_ connection: SocketConnection, peer: PeerIdentity, role: LinkRole, source: LinkSource? = nil) {
        self.role = role
        self.connection = connection
        self.peer = peer
        self.source = source ?? LinkSource(peer)
    }

    deinit { connection.close() }

    var maximumChunkSize: Int { connection.maximumChunkSize }
    func activate(_ receiver: any LinkReceiver) { connection.activate(receiver) }
    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { try connection.trySend(chunk) }
    func setReceiving(_ isReceiving: Bool) { connection.setReceiving(isReceiving) }
    func close() { connection.close() }
}
