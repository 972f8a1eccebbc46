import Ferry
import FerryBluetooth

/// One side of an L2CAP channel. It closes when nobody refers to it any more.
final class LoopbackChannel: L2CAPChannel {
    let psm: PSM
    let peerID: PeerID
    var peer: PeerIdentity { PeerIdentity(peerID.description, certainty: .address) }
    let maximumChunkSize: Int
    private let radio: LoopbackRadio
    private let id: Int

    init(radio: LoopbackRadio, id: Int) {
        self.radio = radio
        self.id = id
        (psm, peerID, maximumChunkSize) = radio.locked { radio in
            let end = radio.channels[id]
            return (
                end?.psm ?? PSM(rawValue: 0), end?.peer ?? PeerID(rawValue: 0), radio.configuration.l2capMTU
            )
        }
    }

    deinit { radio.locked { $0.abandonChannel(id) } }

    func activate(_ receiver: any LinkReceiver) {
        radio.locked { radio in
            guard let end = radio.channels[id], end.receiver == nil, !end.isTold else { return }
            end.receiver = receiver
            if end.endReason != nil { radio.events.append(.channelEnded(id)) }
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
