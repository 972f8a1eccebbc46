import Ferry
import FerryBluetooth

// The states of a link. Each is a value that takes events and says what follows from them.

/// The life of a link, and which sides have asked for its end.
enum LinkLife: Equatable {
    case open
    /// The disconnection waits in the lane of the side that asked first.
    case ending(by: Enders)
    /// A reference to the link that is left must not use it.
    case ended

    enum Enders { case central, peripheral, both }

    // The pump asks for each value: a pattern costs less than `==`.
    var hasEnded: Bool { if case .ended = self { true } else { false } }

    /// A side asks for the end. Returns whether it sends the disconnection: the first one does.
    mutating func beginEnding(by side: Direction) -> Bool {
        switch (self, side) {
        case (.open, .up): self = .ending(by: .central)
        case (.open, .down): self = .ending(by: .peripheral)
        case (.ending(by: .central), .down), (.ending(by: .peripheral), .up):
            self = .ending(by: .both)
            return false
        case (.ending, _), (.ended, _): return false
        }
        return true
    }

    /// Whether a side has asked for the end, or the link has ended.
    func isOver(for side: Direction) -> Bool {
        switch self {
        case .open: false
        case .ending(by: .central): side == .up
        case .ending(by: .peripheral): side == .down
        case .ending(by: .both), .ended: true
        }
    }

    /// The reasons once the disconnection that was asked for is through; `nil` when no side has asked.
    var requested: Ending? {
        switch self {
        case .ending(by: .central): .byCentral
        case .ending(by: .peripheral): .byPeripheral
        case .ending(by: .both): Ending(central: .endedHere, peripheral: .endedHere)
        case .open, .ended: nil
        }
    }

    /// The link ends. Returns the reason for each side, which is its own request if it made one; `nil` when the link has
    /// ended before.
    mutating func end(_ cause: Ending) -> Ending? {
        defer { self = .ended }
        return switch self {
        case .open: cause
        case .ending(by: .central): Ending(central: .endedHere, peripheral: cause.peripheral)
        case .ending(by: .peripheral): Ending(central: cause.central, peripheral: .endedHere)
        case .ending(by: .both): Ending(central: .endedHere, peripheral: .endedHere)
        case .ended: nil
        }
    }
}

/// Why a link ends, for each side.
struct Ending {
    let central: BluetoothError
    let peripheral: BluetoothError

    static let byCentral = Ending(
        central: .endedHere,
        peripheral: BluetoothError(.disconnectedByPeer, "the central ended the connection"))
    static let byPeripheral = Ending(
        central: BluetoothError(.disconnectedByPeer, "the peripheral ended the connection"),
        peripheral: .endedHere)

    /// The same reason for both sides.
    static func both(_ reason: BluetoothError) -> Ending { Ending(central: reason, peripheral: reason) }
}

/// Whether the two sides hear each other.
enum LinkReach: Equatable {
    case inRange
    /// The supervision timeout runs from here.
    case silent(since: Timestamp)

    var isInRange: Bool { if case .inRange = self { true } else { false } }
}

/// The link's place in the pump.
enum LinkTurn {
    case none
    /// A timer runs to its next connection event.
    case scheduled
    /// It is in the pump's list of turns.
    case running
}

/// The one indication that may be open on a link (Core Specification 5.4, Vol 3, Part F, 3.3.2).
enum OpenIndication: Equatable {
    case none
    case queued(deadline: Timestamp)
    /// The central has it and has not confirmed it: its receiver has paused.
    case delivered(deadline: Timestamp)
    /// The confirmation is on its way.
    case confirmed(deadline: Timestamp)

    var deadline: Timestamp? {
        switch self {
        case .none: nil
        case .queued(let deadline), .delivered(let deadline), .confirmed(let deadline): deadline
        }
    }

    var isOpen: Bool { if case .none = self { false } else { true } }

    /// Whether the values behind it wait.
    var blocksValues: Bool {
        switch self {
        case .none, .queued: false
        case .delivered, .confirmed: true
        }
    }

    mutating func queue(until deadline: Timestamp) {
        if case .none = self { self = .queued(deadline: deadline) }
    }

    mutating func deliver() {
        if case .queued(let deadline) = self { self = .delivered(deadline: deadline) }
    }

    /// The receiver takes values. Returns whether a confirmation is to be sent.
    mutating func confirm() -> Bool {
        guard case .delivered(let deadline) = self else { return false }
        self = .confirmed(deadline: deadline)
        return true
    }

    /// The confirmation has arrived. Returns whether it frees the indication's place.
    mutating func complete() -> Bool {
        guard case .confirmed = self else { return false }
        self = .none
        return true
    }
}

/// What a fault does to the value at the head of a lane.
enum HeadFault {
    case none
    /// It does not reach its owner.
    case lost
    /// It is delivered once more.
    case doubled
}
