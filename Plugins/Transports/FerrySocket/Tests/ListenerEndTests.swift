import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerrySocket

#if canImport(Glibc)
    import Glibc
#endif

/// Whoever listens is told when the system takes the socket away.
@Suite(.tags(.channel, .hostility), .timeLimit(.minutes(5))) struct ListenerEndTests {
    @Test func aSocketThatIsShutDownEndsListeningAndSaysWhy() async throws {
        let time = VirtualTime()
        let found = try await Resolver.resolve(
            "127.0.0.1", 0, isListening: true, until: time.now + .unreached, time)
        let descriptor = try Descriptor.open(AF_INET, .stream)
        try #require(found.first).bind(descriptor)
        try descriptor.listen()
        let server = SocketServer([descriptor], nil, .tcp("127.0.0.1", 0), SocketConfiguration(), time)
        let listener = LinkListener { server.close() }
        let told = Journal()
        listener.onInterruption { told.add($0?.message ?? "again") }
        server.begin(listener)
        #expect(listener.interruption == nil)
        _ = shutdown(descriptor.number, Int32(SHUT_RDWR))
        for await link in listener.links { link.close() }
        #expect(listener.interruption?.code == .transportUnavailable)
        #expect(listener.interruption?.message.hasPrefix("Cannot listen at tcp:127.0.0.1:0 any more: ") == true)
        #expect(told.all == [listener.interruption?.message])
    }

    /// Its address is free for the next one at once.
    @Test(arguments: [Kind.unix, .abstract, .tcp]) func anotherListensWhereOneHasBeenClosed(_ kind: Kind) async throws {
        let folder = Folder()
        let address = kind == .tcp ? .tcp(OwnAddress.text, 20021) : kind.address(in: folder)
        let transport = try SocketTransport(address)
        for _ in 0..<200 { try await transport.listen().close() }
    }
}
