package import Ferry
import FerryTesting
import Testing

/// An actor that sends without awaiting: its calls begin one after another, in the order of the messages.
package actor Caller<Message: Sendable> {
    private let channel: MessageChannel<Message, Message>

    package init(_ channel: MessageChannel<Message, Message>) { self.channel = channel }

    package func sendAll(_ messages: [Message]) -> [Task<Void, any Error>] {
        messages.map { message in Task { try await send(message) } }
    }

    private func send(_ message: Message) async throws { try await channel.send(message) }
}

/// What an actor sends without awaiting arrives in the order of the calls.
///
/// - Parameters:
///   - codec: turns the messages into payloads, on whatever threads.
///   - compression: as the channel's.
///   - make: a message that tells its number.
package func expectOrder<C: Codec>(
    _ codec: C, compression: (any Compression)? = nil, count: Int = 500, _ make: (Int) -> C.Message
) async throws where C.Message: Equatable {
    let links = MemoryLink.makePair(maximumChunkSize: 244)
    let pump = carry(links)
    defer { pump.cancel() }
    let sender = try MessageChannel(over: links.0, codec: codec, compression: compression, time: VirtualTime())
    let receiver = try MessageChannel(over: links.1, codec: codec, compression: compression, time: VirtualTime())
    let messages = (0..<count).map(make)
    let tasks = await Caller(sender).sendAll(messages)
    var received: [C.Message] = []
    for try await message in receiver.messages {
        received.append(message)
        if received.count == count { break }
    }
    for task in tasks { try await task.value }
    let moved = zip(messages, received).count { $0 != $1 }
    #expect(moved == 0, "\(moved) of \(count) messages are not in their places")
}
