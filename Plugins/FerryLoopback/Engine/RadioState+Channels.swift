import Ferry
import FerryBluetooth

final class ChannelEnd {
    let id: Int
    let client: Int
    let owner: Int
    var receiver: (any LinkReceiver)?
    var endReason: FerryError?
    init(id: Int, client: Int, owner: Int) {
        self.id = id
        self.client = client
        self.owner = owner
    }
}

extension RadioState {
    func queuedFrames(_ link: AirLink, _ direction: Direction) -> Int { 0 }
    func hasFrames(_ link: AirLink) -> Bool { false }
    mutating func transmitFrame(_ link: AirLink) -> Step? { nil }
    mutating func concludeChunk(_ id: Int, _ link: AirLink) {}
    mutating func endChannel(_ id: Int, locally: Bool) {}
    mutating func channelLinkEnded(_ id: Int, _ ending: Ending) {}
    mutating func endOpenings(_ link: AirLink, _ reason: BluetoothError) {}
    mutating func serveOpen(
        _ psm: PSM, _ client: Int, _ finish: @escaping @Sendable (Result<Int, BluetoothError>) -> Void,
        on link: AirLink
    ) {}
}
