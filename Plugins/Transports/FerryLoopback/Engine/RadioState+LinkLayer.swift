import Ferry
import FerryBluetooth

// The link layer below the radio, when there is a model of one: it says when packets cross, the lanes say which.
extension RadioState {
    /// Queues a PDU that is not a value.
    mutating func send(_ pdu: PDU, _ direction: Direction, on link: AirLink) {
        link.lane(direction).append(pdu, during: link.eventNumber)
        announce(pdu.unit(attMTU: link.attMTU), direction, on: link)
    }

    /// Tells the link layer of a packet that has been queued.
    mutating func announce(_ unit: LinkLayerUnit, _ direction: Direction, on link: AirLink) {
        guard hasLinkLayer else { return }
        let now = time.now
        linkLayer?.enqueue(
            unit, from: direction == .up ? .central : .peripheral, on: link.linkLayerName, at: now)
        armLinkLayer()
    }

    /// Tells the link layer of the K-frames of a chunk; the first also carries the SDU's length (Core Specification 5.4,
    /// Vol 3, Part A, 3.4.3). Each has the same 4-byte header as an ATT PDU's frame.
    mutating func announceFrames(of length: Int, _ direction: Direction, on link: AirLink) {
        guard hasLinkLayer else { return }
        var rest = length + 2
        while rest > 0 {
            announce(.attribute(pduLength: min(rest, configuration.l2capMPS)), direction, on: link)
            rest -= configuration.l2capMPS
        }
    }

    /// Sets the timer for what the link layer will do next.
    mutating func armLinkLayer() {
        guard let deadline = linkLayer?.deadline else { return }
        if let armed = linkLayerDeadline, armed <= deadline { return }
        linkLayerDeadline = deadline
        timers.append((deadline, .linkLayer(deadline)))
    }

    /// Delivers the packets that have crossed by now. A timer that an earlier one has replaced does nothing.
    mutating func linkLayerDue(_ deadline: Timestamp) {
        guard deadline == linkLayerDeadline else { return }
        linkLayerDeadline = nil
        let now = time.now
        while let event = linkLayer?.poll(at: now) {
            switch event {
            case .accepted: break  // A place is free again once its value is delivered, as without a link layer.
            case .delivered(let name, let sender):
                guard let link = links[Int(name.rawValue)] else { continue }
                link.lane(sender == .central ? .up : .down).budget += 1
                resume(link)
            case .lost(let name):
                guard let link = links[Int(name.rawValue)] else { continue }
                end(
                    link,
                    .both(BluetoothError(.connectionTimeout, "nothing was heard of the peer: link-layer timeout")))
            }
        }
        armLinkLayer()
    }

    /// Whether something that the link layer has delivered can go.
    func hasDelivery(_ link: AirLink) -> Bool {
        guard link.reach.isInRange else { return false }
        return link.up.budget > 0 && (link.next(.up, during: nil) != .nothing || hasFrames(link, .up))
            || link.down.budget > 0 && (link.next(.down, during: nil) != .nothing || hasFrames(link, .down))
    }
}

extension AirLink {
    /// The connection's name towards the link layer.
    var linkLayerName: LinkLayerConnection { LinkLayerConnection(rawValue: UInt32(truncatingIfNeeded: id)) }
}

extension PDU {
    /// The size on the air (Core Specification 5.4, Vol 3, Part F, 3.4, and Part A, 4).
    func unit(attMTU: Int) -> LinkLayerUnit {
        switch self {
        case .request(.exchangeMTU): .attribute(pduLength: 3)
        case .request(.discover): .attribute(pduLength: 7)
        case .request(.read(_, let offset)): .attribute(pduLength: offset == 0 ? 3 : 5)
        case .request(.write(_, let value)): .attribute(pduLength: 3 + value.count)
        case .request(.prepare(_, _, let value)): .attribute(pduLength: 5 + value.count)
        case .request(.execute): .attribute(pduLength: 2)
        case .request(.configure): .attribute(pduLength: 5)
        case .response(.success(.done)): .attribute(pduLength: 1)
        case .response(.success(.value(let value))): .attribute(pduLength: 1 + value.count)
        case .response(.success): .attribute(pduLength: attMTU)
        case .response(.failure): .attribute(pduLength: 5)
        case .confirmation: .attribute(pduLength: 1)
        case .openChannel, .channelOpened, .channelRefused: .attribute(pduLength: 14)
        case .terminate: .raw(2)
        }
    }
}
