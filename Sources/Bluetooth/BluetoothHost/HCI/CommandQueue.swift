import DequeModule

/// Commands on their way to the controller: one at a time, and only when the controller has room
/// (Core Specification 5.4, Vol 4, Part E, 4.4).
///
/// Every command has a deadline, for sending as for being answered: a controller that says nothing is found out.
struct CommandQueue: Sendable {
    /// How long a command may wait for its answer, in nanoseconds. Controllers answer within 1 s (4.4); a busy machine
    /// gets some grace.
    static let timeout: Int64 = 4_000_000_000
    /// From when on a wake is late, and what the controller is given then.
    private static let lateness: Int64 = 500_000_000
    private static let grace: Int64 = 1_000_000_000

    private var waiting: Deque<HCICommand> = []
    private(set) var inFlight: HCICommand?
    private var credits = 1
    private(set) var deadline: Int64?

    var isIdle: Bool { waiting.isEmpty && inFlight == nil }
    var count: Int { waiting.count + (inFlight == nil ? 0 : 1) }

    mutating func enqueue(_ command: HCICommand, at now: Int64) {
        waiting.append(command)
        if deadline == nil { deadline = now + Self.timeout }
    }

    /// Whether one of the waiting commands, or the one in flight, has this purpose.
    func contains(_ purpose: CommandPurpose) -> Bool {
        inFlight?.purpose == purpose || waiting.contains { $0.purpose == purpose }
    }

    /// Takes the next command if the controller has room for it.
    mutating func next(at now: Int64) -> HCICommand? {
        guard inFlight == nil, credits > 0, let command = waiting.popFirst() else { return nil }
        credits -= 1
        inFlight = command
        deadline = now + Self.timeout
        return command
    }

    /// Takes the controller's answer; returns the command that it answers, if any does.
    ///
    /// Opcode 0 only grants room, and an answer to a command that was not sent is ignored but for that.
    mutating func complete(opcode: UInt16, credits granted: UInt8, at now: Int64) -> HCICommand? {
        credits = Int(granted)
        guard let command = inFlight, command.opcode.rawValue == opcode else { return nil }
        inFlight = nil
        deadline = waiting.isEmpty ? nil : now + Self.timeout
        return command
    }

    /// Gives the controller time to answer where this side wakes long after the deadline: it did not run meanwhile, for it was
    /// stopped, or its machine was, so that the answer waits unread, or could not be given.
    mutating func extend(at now: Int64) -> Bool {
        guard let deadline, now - deadline >= Self.lateness else { return false }
        self.deadline = now + Self.grace
        return true
    }

    /// Lets a command go that the controller does not answer and that can be done without. There are controllers that leave
    /// out single commands; one that is silent altogether is found out by the next that matters.
    mutating func giveUp(at now: Int64) -> HCICommand? {
        guard let command = inFlight, command.purpose.isOptional else { return nil }
        inFlight = nil
        credits = 1
        deadline = waiting.isEmpty ? nil : now + Self.timeout
        return command
    }

    /// Forgets everything, as the controller does on Reset, for which there is always room.
    mutating func reset() { self = CommandQueue() }
}
