public import Ferry

/// What the process's resident memory grows to while a message crosses from one session to another.
public struct PeakMemory: Sendable {
    /// The growth in bytes, or nil where the system does not tell.
    public let growth: Int?

    /// Sends one message of `messageSize` bytes, which the sending session alone holds.
    public static func ofMessage(_ framing: some Framing, messageSize: Int, chunkSize: Int) throws -> PeakMemory {
        resetPeak()
        let before = status("VmRSS:")
        var sender = framing.makeSession(limits: .wide)
        var receiver = framing.makeSession(limits: .wide)
        try sender.enqueue([UInt8](repeating: 0x2A, count: messageSize), as: MessageID(rawValue: 0), at: .zero)
        var delivered = 0
        while try sender.transmit(
            atMost: chunkSize, at: .zero,
            { (chunk) throws(FerryError) in
                try receiver.receive(chunk, at: .zero)
                return true
            }) == .accepted
        {
            while sender.nextEvent() != nil {}
            while let event = receiver.nextEvent() {
                if case .received(let message) = event { delivered += message.count }
            }
        }
        precondition(delivered == messageSize)
        guard let before, let peak = status("VmHWM:") else { return PeakMemory(growth: nil) }
        return PeakMemory(growth: peak - before)
    }
}
