public import Ferry
public import FerryBluetooth
import Synchronization

/// An in-process virtual radio: any number of Bluetooth LE adapters that hear one another, without hardware.
///
/// The adapters keep CoreBluetooth's contract as `FerryBluetooth`'s seam states it. Time comes from a `TimeSource` only:
/// under `VirtualTime` a test decides when it passes and every run is the same; under `SystemTime` the radio runs by itself.
///
/// ## What it does not model
/// Air time and loss below the connection (every packet of a connection arrives, unless ``Configuration/faults`` say
/// otherwise), addresses that change, and the link layer's own procedures. Two adapters that connect to one another in both directions
/// have two connections. Pairing is a yes or a no, without keys.
public final class LoopbackRadio: Sendable {
    private let state: Mutex<RadioState>
    private let time: any TimeSource

    /// Makes a radio with the default configuration.
    public init(time: any TimeSource = SystemTime()) {
        self.time = time
        state = Mutex(RadioState(time: time, configuration: Configuration()))
    }

    /// Makes a radio.
    ///
    /// - Throws: `FerryError` with `invalidConfiguration`, naming the setting and its range.
    public init(time: any TimeSource = SystemTime(), configuration: Configuration) throws(FerryError) {
        try configuration.validate()
        self.time = time
        state = Mutex(RadioState(time: time, configuration: configuration))
    }

    /// Makes an adapter, which stays with the radio for good.
    ///
    /// - Parameters:
    ///   - name: what messages call it; nil for `loopback:` and its number.
    ///   - state: the state it begins with.
    public func makeAdapter(name: String? = nil, state: AdapterState = .poweredOn) -> LoopbackAdapter {
        let (index, name) = locked { radio in
            let index = radio.nodes.count
            let name = name ?? "loopback:\(index)"
            radio.nodes.append(Node(index: index, name: name, state: state))
            return (index, name)
        }
        return LoopbackAdapter(radio: self, index: index, name: name)
    }

    /// Sets how strongly two adapters hear one another, in dBm from -127 to 20; values outside are held at the limits.
    public func setRSSI(_ rssi: Int, between a: LoopbackAdapter, and b: LoopbackAdapter) {
        locked { radio in
            radio.pairs[Pair(a.index, b.index), default: PairConditions()].rssi = min(max(rssi, -127), 20)
            radio.scheduleAllAdvertising()
        }
    }

    /// Moves two adapters out of one another's range, or back. Connections outlive it by
    /// ``Configuration/supervisionTimeout``; then both sides are told `connectionTimeout`. Connections that are waiting to be
    /// made go on waiting, and are made when the adapters hear one another again.
    public func setInRange(_ isInRange: Bool, between a: LoopbackAdapter, and b: LoopbackAdapter) {
        locked { $0.setInRange(isInRange, a.index, b.index) }
    }

    /// Forgets that two adapters were paired. Connections that are encrypted stay so.
    public func removeBond(between a: LoopbackAdapter, and b: LoopbackAdapter) {
        locked { $0.pairs[Pair(a.index, b.index)]?.isBonded = false }
    }

    /// Whether two adapters have been paired.
    public func isBonded(_ a: LoopbackAdapter, _ b: LoopbackAdapter) -> Bool {
        locked { $0.pairs[Pair(a.index, b.index)]?.isBonded ?? false }
    }

    /// Has other things go wrong on the connections that two adapters make from now on than
    /// ``Configuration/faults`` says; nil for what it says. Ready signals are not concerned: they belong to no connection.
    ///
    /// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration`.
    public func setFaults(
        _ faults: Faults?, between a: LoopbackAdapter, and b: LoopbackAdapter
    ) throws(FerryError) {
        try faults?.validate()
        locked { $0.pairs[Pair(a.index, b.index), default: PairConditions()].faults = faults }
    }

    /// How often each kind of fault has struck so far.
    public var injectedFaults: [Faults.Kind: Int] { locked { $0.injected } }

    // MARK: Lock and pump

    /// Reads the state under the lock.
    func read<Value: Sendable>(_ body: (borrowing RadioState) -> Value) -> Value { state.withLock { body($0) } }

    /// Works on the state under the lock, then sets the timers that this has asked for.
    func locked<Value: Sendable, Failure: Error>(
        _ body: (inout RadioState) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        var timers: [(deadline: Timestamp, timer: Timer)] = []
        var released: [any Sendable] = []
        defer {
            for (deadline, timer) in timers {
                time.schedule(at: deadline) { [self] in fire(timer) }
            }
            withExtendedLifetime(released) {}
        }
        return try state.withLock { (radio) throws(Failure) in
            defer {
                if !radio.timers.isEmpty { timers = radio.takeTimers() }
                if !radio.released.isEmpty { released = radio.takeReleased() }
            }
            return try body(&radio)
        }
    }

    private func fire(_ timer: Timer) {
        let isRunner = locked { radio in
            radio.take(timer)
            guard !radio.isRunning else { return false }
            radio.isRunning = true
            radio.stepsInRun = 0
            return true
        }
        guard isRunner else { return }
        var delivered = 1
        while let step = locked({ $0.nextStep(after: delivered) }) { delivered = step.perform(on: self) }
    }
}

extension RadioState {
    mutating func takeTimers() -> [(deadline: Timestamp, timer: Timer)] {
        defer { timers.removeAll(keepingCapacity: true) }
        return timers
    }

    mutating func takeReleased() -> [any Sendable] {
        defer { released = [] }
        return released
    }

    mutating func take(_ timer: Timer) {
        switch timer {
        case .wake: isWakeSet = false
        case .advertising(let id): advertisingDue(id)
        case .connectionEvent(let id): connectionEventDue(id)
        case .linkLayer(let deadline): linkLayerDue(deadline)
        case .supervision(let id, let silence): supervisionDue(id, since: silence)
        case .transactions(let id): transactionsDue(id)
        case .forcedEnd(let id): forcedEndDue(id)
        case .forcedClose(let id, let queuedFrames): forcedCloseDue(id, before: queuedFrames)
        case .lateReady(let event): events.append(event)
        case .stallOver(let id, let direction): stallDue(id, direction)
        }
    }
}
