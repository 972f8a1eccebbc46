import Ferry
import FerryBluetooth

/// One side of an L2CAP channel.
///
/// Credits are counted where they are observable: a chunk is taken while credits are left and costs one for each of its
/// frames; they come back when the peer has taken the chunk, and are withheld while the peer has paused. A chunk of more
/// frames than credits are left is taken too, and its last frames wait for credits that come back, as the specification
/// has it (Core Specification 5.4, Vol 3, Part A, 3.4.3 and 10.1).
final class ChannelEnd {
    let id: Int
    let other: Int
    let link: Int
    let psm: PSM
    let peer: PeerID
    /// The way its chunks go.
    let direction: Direction
    /// The peripheral role it belongs to, or the central's client.
    let owner: Int

    var life = ChannelLife.open(nil)
    var isReceiving = true
    var ring: ValueRing?
    var credits: Int
    /// Credits that the other side gets back when this one goes on receiving.
    var withheld = 0
    /// Frames of all chunks that are queued, and those of the first that have been sent.
    var queuedFrames = 0
    var sentFrames = 0
    var wantsReady = false
    /// The last reference to the channel is gone.
    var isAbandoned = false

    init(
        id: Int, other: Int, link: Int, psm: PSM, peer: PeerID, direction: Direction, owner: Int, credits: Int
    ) {
        self.id = id
        self.other = other
        self.link = link
        self.psm = psm
        self.peer = peer
        self.direction = direction
        self.owner = owner
        self.credits = credits
    }

    var receiver: (any LinkReceiver)? { life.receiver }
    var takesChunks: Bool { isReceiving && receiver != nil }
}
