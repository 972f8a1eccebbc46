/// What a session is doing with its link, and the one table of how that changes. ``diagram`` prints the table for
/// `Documentation/Sequenced.md`.
enum SessionPhase: String, CaseIterable, Sendable {
    /// There is no link. Messages wait; unacknowledged ones are kept.
    case suspended
    /// A hello goes out until the peer's comes.
    case greeting
    /// The peer is known, and it is not known yet whether it knows us. Chunks may go.
    case met
    /// Both know each other.
    case established
    /// The peer cannot be talked to: the reason goes out, and then the session ends.
    case refusing

    enum Event: String, CaseIterable, Sendable {
        case linkOpened = "link opens"
        case linkClosed = "link closes"
        case helloAccepted = "hello"
        case knownHelloAccepted = "hello that has met us, or any other chunk"
        case peerForgot = "hello of another session"
        case incompatible = "hello we cannot accept"
    }

    struct Transition: Sendable {
        let from: SessionPhase
        let event: Event
        let to: SessionPhase
    }

    static let transitions: [Transition] = [
        Transition(from: .suspended, event: .linkOpened, to: .greeting),
        Transition(from: .greeting, event: .helloAccepted, to: .met),
        Transition(from: .greeting, event: .knownHelloAccepted, to: .established),
        Transition(from: .greeting, event: .peerForgot, to: .greeting),
        Transition(from: .greeting, event: .incompatible, to: .refusing),
        Transition(from: .greeting, event: .linkClosed, to: .suspended),
        Transition(from: .met, event: .knownHelloAccepted, to: .established),
        Transition(from: .met, event: .peerForgot, to: .greeting),
        Transition(from: .met, event: .incompatible, to: .refusing),
        Transition(from: .met, event: .linkClosed, to: .suspended),
        Transition(from: .established, event: .linkClosed, to: .suspended),
        Transition(from: .refusing, event: .linkClosed, to: .suspended),
    ]

    /// Moves as the table says; what it does not list changes nothing.
    mutating func move(_ event: Event) {
        for transition in Self.transitions where transition.from == self && transition.event == event {
            self = transition.to
            return
        }
    }

    /// The table as a Mermaid state diagram.
    static var diagram: String {
        var lines = ["stateDiagram-v2", "    [*] --> \(suspended)"]
        lines += transitions.map { "    \($0.from) --> \($0.to): \($0.event.rawValue)" }
        return lines.joined(separator: "\n")
    }
}
