import Ferry
import FerrySocket
import FerryTesting
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Peers that do not speak the format, stop in the middle, or do not go.
@Suite(.tags(.channel, .hostility), .timeLimit(.minutes(5))) struct HostileTests {
    /// A plain TCP or Unix client without any of this library.
    private func connectPlainly(toPort port: UInt16) throws -> Int32 {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(result == 0)
        return client
    }

    private func connectPlainly(toPath path: String) throws -> Int32 {
        let client = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0)
        return client
    }

    private func accept(_ listener: LinkListener) async throws -> (any Link, Owner) {
        for await link in listener.links {
            let owner = Owner()
            link.activate(owner)
            return (link, owner)
        }
        throw FerryError(.peerNotFound, "The listener ended.")
    }

    @Test func bytesAreThoseOfTheFormat() async throws {
        let transport = try SocketTransport(.tcp("127.0.0.1", 0))
        let listener = try await transport.listen()
        let client = try connectPlainly(toPort: try #require(transport.port))
        defer { close(client) }
        let (link, owner) = try await accept(listener)
        // A byte at a time.
        for byte in [0x00, 0x02, 0xAB, 0xCD, 0x00, 0x01, 0xEF] as [UInt8] { #expect(write(client, [byte], 1) == 1) }
        try await until("two chunks") { owner.chunks.count == 2 }
        #expect(owner.chunks == [[0xAB, 0xCD], [0xEF]])
        #expect(try link.trySend(([1, 2, 3] as [UInt8]).span.bytes))
        var answer = [UInt8](repeating: 0, count: 5)
        #expect(recv(client, &answer, 5, Int32(truncatingIfNeeded: MSG_WAITALL)) == 5)
        #expect(answer == [0, 3, 1, 2, 3])
        link.close()
        #expect(recv(client, &answer, 5, 0) == 0, "the end is told")
        listener.close()
    }

    @Test func aChunkWithoutBytesEndsTheLink() async throws {
        let transport = try SocketTransport(.tcp("127.0.0.1", 0))
        let listener = try await transport.listen()
        let client = try connectPlainly(toPort: try #require(transport.port))
        defer { close(client) }
        let (link, owner) = try await accept(listener)
        #expect(write(client, [0, 1, 7, 0, 0] as [UInt8], 5) == 5)
        try await until("the end") { owner.reasons.count == 1 }
        #expect(owner.chunks == [[7]])
        #expect(owner.reasons[0].code == .malformedStream)
        link.close()
        listener.close()
    }

    @Test func aStreamThatStopsInAChunkEnds() async throws {
        let transport = try SocketTransport(.tcp("127.0.0.1", 0))
        let listener = try await transport.listen()
        let client = try connectPlainly(toPort: try #require(transport.port))
        let (link, owner) = try await accept(listener)
        #expect(write(client, [0, 1, 7, 0xFF, 0xFF, 1, 2] as [UInt8], 7) == 7)
        try await until("the whole chunk") { owner.chunks == [[7]] }
        // An abrupt end: what was on its way is thrown away.
        var abrupt = linger(l_onoff: 1, l_linger: 0)
        setsockopt(client, SOL_SOCKET, SO_LINGER, &abrupt, socklen_t(MemoryLayout<linger>.size))
        close(client)
        try await until("the end") { owner.reasons.count == 1 }
        #expect(owner.reasons[0].code == .disconnected)
        #expect(throws: FerryError.self) { try link.trySend(([1] as [UInt8]).span.bytes) }
        listener.close()
    }

    @Test func packetsThatAreNoChunksEndTheLink() async throws {
        let folder = Folder()
        let transport = try SocketTransport(folder.socket)
        for (size, code) in [(0, FerryError.Code.disconnected), (65_536, .malformedStream)] {
            let listener = try await transport.listen()
            let client = try connectPlainly(toPath: folder.path + "/socket")
            defer { close(client) }
            let (link, owner) = try await accept(listener)
            #expect(write(client, [7] as [UInt8], 1) == 1)
            #expect(send(client, [UInt8](repeating: 1, count: max(1, size)), size, 0) == size)
            try await until("the end") { owner.reasons.count == 1 }
            #expect(owner.chunks == [[7]])
            #expect(owner.reasons[0].code == code)
            link.close()
            listener.close()
        }
    }

    /// What was sent before an abrupt end arrives: the end is told after it.
    @Test func whatArrivedComesBeforeTheEnd() async throws {
        let folder = Folder()
        let transport = try SocketTransport(folder.socket)
        let listener = try await transport.listen()
        let client = try connectPlainly(toPath: folder.path + "/socket")
        var unactivated: (any Link)?
        for await link in listener.links {
            unactivated = link
            break
        }
        let link = try #require(unactivated)
        // The client has not read this when it ends, so that the system tells of a reset.
        #expect(try link.trySend(([9] as [UInt8]).span.bytes))
        for index in 0..<100 as Range<UInt8> { #expect(write(client, [index], 1) == 1) }
        close(client)
        let owner = Owner()
        link.activate(owner)
        try await until("the end") { owner.reasons.count == 1 }
        #expect(owner.chunks == (0..<100).map { [UInt8($0)] })
        #expect(owner.reasons[0].code == .disconnected)
        listener.close()
    }

    /// A peer that takes nothing cannot hold up the end of the link.
    @Test func aPeerThatTakesNothingIsLeft() async throws {
        let transport = try SocketTransport(.tcp("127.0.0.1", 0), configuration: Self.impatient)
        let listener = try await transport.listen()
        let client = try connectPlainly(toPort: try #require(transport.port))
        defer { close(client) }
        let (link, owner) = try await accept(listener)
        let chunk = [UInt8](repeating: 1, count: link.maximumChunkSize)
        var taken = 0
        while try link.trySend(chunk.span.bytes) {
            taken += 1
            try #require(taken < 1000, "the system takes more than is sensible")
        }
        link.close()
        try await until("the end") { owner.reasons.count == 1 }
        #expect(owner.reasons[0].code == .closed)
        listener.close()
    }

    private static var impatient: SocketConfiguration {
        var configuration = SocketConfiguration()
        configuration.linger = .milliseconds(100)
        return configuration
    }

    /// A stranger who connects and says nothing, a thousand times, costs no more than waiting for it once.
    @Test func aFloodOfConnectionsIsBounded() async throws {
        let folder = Folder()
        let transport = try SocketTransport(folder.socket, time: VirtualTime())
        let listener = try await transport.listen()
        var clients: [Int32] = []
        for _ in 0..<200 { clients.append(try connectPlainly(toPath: folder.path + "/socket")) }
        defer { for client in clients { close(client) } }
        // Whoever was one too many is told.
        try await until("those who are one too many to be let go") {
            clients.count { client in
                var byte: UInt8 = 0
                return recv(client, &byte, 1, Int32(truncatingIfNeeded: MSG_DONTWAIT)) == 0
            } == 200 - 64
        }
        var taken = 0
        for await link in listener.links {
            link.close()
            taken += 1
            if taken == 64 { break }
        }
        listener.close()
    }
}
