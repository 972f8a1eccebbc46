public import Ferry

/// An L2CAP connection-oriented channel: a link whose chunks are SDUs and whose backpressure is the peer's credits.
public protocol L2CAPChannel: Link {
    /// The number it was opened by.
    var psm: PSM { get }
    /// The other side, as this process names it.
    var peerID: PeerID { get }
}
