import Ferry
import FerryBluetooth

/// One side of an L2CAP channel. It closes with its last reference.
final class LoopbackChannel: L2CAPChannel {
    let psm: PSM
    let peerID: PeerID
    let role: LinkRole?
    let maximumChunkSize: Int
    private let radio: LoopbackRadio
    private let id: Int
    private let knownIdentity: KnownIdentity

    init(radio: LoopbackRadio, id: Int, role: LinkRole) {
        self.role = role
        self.radio = radio
        self.id = id
        let peer: PeerIdentity?
        (psm, peerID, maximumChunkSize, peer) = radio.read { radio in
            let end = radio.channels[id]
            return (
                end?.psm ?? PSM(rawValue: 0), end?.peer ?? PeerID(rawValue: 0), radio.configuration.l2capMTU,
                radio.identity(ofChannel: id)
            )
        }
        knownIdentity = KnownIdentity(peerID, peer)
    }

    deinit { radio.locked { $0.abandonChannel(id) } }

    var peer: PeerIdentity { knownIdentity.update(radio.read { $0.identity(ofChannel: id) }) }

    func activate(_ receiver: any LinkReceiver) {
        radio.locked { radio in
            guard let end = radio.channels[id] else { return }
            if let reason = end.life.activate(receiver) {
                radio.events.append(.call { receiver.linkDidClose(reason) })
            }
            if let link = radio.links[end.link] { radio.resume(link) }
            radio.wake()
        }
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        try chunk.withUnsafeBytes { (bytes) throws(FerryError) in
            try radio.locked { (radio) throws(FerryError) in try radio.trySend(bytes, on: id) }
        }
    }

    func setReceiving(_ isReceiving: Bool) { radio.locked { $0.setReceiving(isReceiving, channel: id) } }

    func close() { radio.locked { $0.closeChannel(id) } }
}

extension RadioState {
    /// Who is at the other end of a channel, while its link lives.
    fileprivate func identity(ofChannel id: Int) -> PeerIdentity? {
        guard let end = channels[id], let link = links[end.link] else { return nil }
        return Self.identity(
            ofNode: end.direction == .up ? link.peripheral : link.central, isProven: isProven(link))
    }
}
