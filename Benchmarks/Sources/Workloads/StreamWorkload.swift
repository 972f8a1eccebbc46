/// What an app's author writes by hand: each chunk an array of its own in an `AsyncStream`, joined by the reader. No framing,
/// no Bluetooth, no backpressure, no limits: what is measured is how chunks get from one task to another.
public struct StreamWorkload: Sendable {
    private let chunkSize: Int
    private let message: [UInt8]

    /// Messages of `messageSize` bytes in chunks of `chunkSize`.
    public init(messageSize: Int, chunkSize: Int) {
        self.chunkSize = chunkSize
        message = [UInt8](repeating: 7, count: messageSize)
    }

    /// The nanoseconds that a chunk took, in each round.
    public func timed(rounds: Int, messages: Int) async -> [Double] {
        var results: [Double] = []
        for _ in 0..<rounds {
            let start = ContinuousClock.now
            for _ in 0..<messages { await transfer() }
            let chunks = messages * ((message.count + chunkSize - 1) / chunkSize)
            results.append(start.duration(to: .now) / .nanoseconds(1) / Double(chunks))
        }
        return results
    }

    private func transfer() async {
        let (chunks, sender) = AsyncStream<[UInt8]>.makeStream()
        async let sending: Void = {
            for start in stride(from: 0, to: message.count, by: chunkSize) {
                sender.yield(Array(message[start..<min(start + chunkSize, message.count)]))
            }
            sender.finish()
        }()
        var received: [UInt8] = []
        for await chunk in chunks { received += chunk }
        await sending
        precondition(received.count == message.count)
    }
}
