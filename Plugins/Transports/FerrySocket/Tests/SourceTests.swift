import Ferry
import FerrySocket
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What a listener knows of the other ends, and what those that never read cost.
@Suite(.tags(.channel, .hostility), .timeLimit(.minutes(2))) struct SourceTests {
    /// Ports and the lower half of an IPv6 address are a peer's to choose; none of them is another source.
    @Test(arguments: [
        (Kind.tcp, LinkSource.address("127.0.0.1")), (.tcp6, .address("0000000000000000/64")),
        (.unix, .user(getuid(), process: getpid())),
    ]) func aLinkComesFromAHostOrAUser(_ kind: Kind, _ source: LinkSource) async throws {
        let rig = try SocketRig(kind)
        let pairs = try await [rig.makePair(), rig.makePair()]
        for (near, far) in pairs {
            #expect(far.source == source)
            near.close()
            far.close()
        }
    }

    /// A listener that closes connections has something on its way to each; peers that never read hold at most 64 descriptors.
    @Test func closedConnectionsThatAreNotReadAreFew() async throws {
        var configuration = SocketConfiguration()
        configuration.linger = .seconds(600)
        let transport = try SocketTransport(.tcp("127.0.0.1", 0), configuration: configuration)
        let listener = try await transport.listen()
        let client = try SocketTransport(.tcp("127.0.0.1", try #require(transport.port)))
        var links = listener.links.makeAsyncIterator()
        var owners: [Owner] = []
        var clients: [any Link] = []
        for _ in 0..<100 {
            clients.append(try await client.connect(timeout: .unreached))
            let link = try #require(await links.next())
            let owner = Owner()
            link.activate(owner)
            #expect(try link.trySend(([7] as [UInt8]).span.bytes))
            link.close()
            owners.append(owner)
        }
        try await until("the oldest have ended") { owners.count { !$0.reasons.isEmpty } == 36 }
        #expect(owners.prefix(36).allSatisfy { $0.reasons.first?.code == .closed })
        for link in clients { link.close() }
        listener.close()
    }

    /// A receiver that owns its link, as a channel does, and that nobody else keeps: it is let go of while the connection ends.
    @Test func aReceiverOwnsItsLink() async throws {
        final class Keeper: LinkReceiver {
            let link: any Link
            init(_ link: any Link) { self.link = link }
            func linkIsReady() {}
            func linkDidReceive(_ chunk: RawSpan) {}
            func linkDidClose(_ reason: FerryError) {}
        }
        let transport = try SocketTransport(.tcp("127.0.0.1", 0))
        let listener = try await transport.listen()
        let client = try SocketTransport(.tcp("127.0.0.1", try #require(transport.port)))
        var links = listener.links.makeAsyncIterator()
        var clients: [any Link] = []
        for _ in 0..<1000 {
            clients.append(try await client.connect(timeout: .unreached))
            if clients.count > 100 { clients.removeFirst().close() }
            let link = try #require(await links.next())
            link.activate(Keeper(link))
            #expect(try link.trySend(([7] as [UInt8]).span.bytes))
            link.close()
        }
        for link in clients { link.close() }
        listener.close()
    }
}
