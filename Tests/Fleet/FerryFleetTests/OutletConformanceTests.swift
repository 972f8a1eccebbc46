import Ferry
import FerryFleet
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The kit of outlets: it takes a good one, and finds each fault of a bad one.
@Suite(.tags(.records)) struct OutletConformanceTests {
    enum Fault: CaseIterable {
        case losesTaken, doublesFirst, swaps, cutsBytes, mixesLanes, takesTooLarge, inventsAnswers, takesAfterClosing
        case refusesWhenFull, saysUnansweredWhenFull
    }

    /// A destination in memory, and at the same time the outlets to it.
    private final class Destination: Sendable {
        struct State {
            var deliveries: [OutletConformance.Delivery] = []
            var isAway = false
            var isFull = false
            var held: OutletConformance.Delivery?
        }

        let state = Mutex(State())
        let fault: Fault?
        init(_ fault: Fault?) { self.fault = fault }

        func take(_ message: OutletMessage, isClosed: Bool) -> OutletAnswer {
            let error = FerryError(.closed, "Not now.")
            return state.withLock { state in
                if isClosed && fault != .takesAfterClosing { return .gone(error) }
                if state.isAway { return fault == .inventsAnswers ? .taken(isDuplicate: false) : .unanswered(error) }
                if state.isFull {
                    switch fault {
                    case .refusesWhenFull: return .refused(error)
                    case .saysUnansweredWhenFull: return .unanswered(error)
                    default: return .full(error)
                    }
                }
                if message.bytes.count > 1000 && fault != .takesTooLarge { return .refused(error) }
                let name = fault == .mixesLanes ? "x" : OutletAddress.level(message.lane.stream)
                let delivery = OutletConformance.Delivery(
                    address: "\(OutletAddress.level(message.lane.sender))/\(name)", key: message.key,
                    bytes: fault == .cutsBytes ? Array(message.bytes.prefix(20)) : message.bytes)
                switch fault {
                case .losesTaken where state.deliveries.count == 7: break
                case .swaps where message.key == "order-b/s/3": state.held = delivery
                case .doublesFirst: state.deliveries += [delivery, delivery]
                default: state.deliveries.append(delivery)
                }
                if message.key == "order-b/s/4", let held = state.held { state.deliveries.append(held) }
                return .taken(isDuplicate: false)
            }
        }

        var rig: OutletConformance.Rig {
            func set(_ path: any WritableKeyPath<State, Bool> & Sendable, _ value: Bool)
                -> @Sendable () async throws -> Void
            {
                { [self] in state.withLock { $0[keyPath: path] = value } }
            }
            return OutletConformance.Rig(
                open: { [self] in MemoryOutlet(self) }, deliveries: { [self] in state.withLock { $0.deliveries } },
                kill: set(\.isAway, true), start: set(\.isAway, false), halt: set(\.isAway, true),
                resume: set(\.isAway, false), fill: set(\.isFull, true), drain: set(\.isFull, false),
                refused: OutletMessage(
                    .init(sender: "large", stream: "s"), key: "large", bytes: [UInt8](repeating: 0, count: 1001)),
                // A good one needs no time; a bad one is given up after this.
                timeout: fault == nil ? .seconds(60) : .milliseconds(300))
        }
    }

    private final class MemoryOutlet: Outlet {
        let destination: Destination
        let isClosed = Mutex(false)
        init(_ destination: Destination) { self.destination = destination }
        func publish(_ message: OutletMessage) async -> OutletAnswer {
            destination.take(message, isClosed: isClosed.withLock { $0 })
        }
        func close() async { isClosed.withLock { $0 = true } }
    }

    @Test func goodOutletConforms() async throws { try await OutletConformance(Destination(nil).rig).check() }

    /// Which requirement a fault breaks first.
    private static let requirements: [Fault: String] = [
        .losesTaken: "a taken message arrives",
        .doublesFirst: "each message of a lane arrives once, whole and in order",
        .swaps: "each message of a lane arrives once, whole and in order",
        .cutsBytes: "a message arrives whole",
        .mixesLanes: "two lanes have two addresses",
        .takesTooLarge: "what can never be taken is refused",
        .inventsAnswers: "without a server a message is to be repeated",
        .takesAfterClosing: "a closed outlet takes nothing",
        .refusesWhenFull: "without room the answer is full",
        .saysUnansweredWhenFull: "without room the answer is full",
    ]

    @Test(arguments: Fault.allCases) func faultIsFound(_ fault: Fault) async throws {
        let failure = await #expect(throws: ConformanceFailure.self) {
            try await OutletConformance(Destination(fault).rig).check()
        }
        #expect(failure?.requirement == Self.requirements[fault], "\(failure as Any)")
    }

    @Test(arguments: [
        ("", "%"), ("a-Z_9", "a-Z_9"), ("a/b", "a%2Fb"), ("+#.*>$ ", "%2B%23%2E%2A%3E%24%20"), ("%", "%25"),
        ("ä\u{0}", "%C3%A4%00"),
    ]) func levelHasNoWildcards(_ text: String, _ level: String) { #expect(OutletAddress.level(text) == level) }
}
