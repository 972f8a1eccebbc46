import Ferry
import FerrySocket
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Addresses as people type them, and what is in the way at them.
@Suite(.tags(.channel, .hostility), .timeLimit(.minutes(5))) struct AddressTests {
    @Test(arguments: [
        ("unix:/run/x", false, false), ("tcp:localhost:1", false, false), ("tcp:127.0.0.1:1", false, false),
        ("tcp:127.80.3.4:1", false, false), ("tcp:[::1]:1", false, false), ("tcp::1", false, true),
        ("tcp:0.0.0.0:1", true, true), ("tcp:[::]:1", true, true), ("tcp:127.evil.example.org:1", true, true),
        ("tcp:127.0.0.1.example.org:1", true, true), ("tcp:127.1:1", true, true), ("tcp:10.0.0.7:1", true, true),
        ("tcp:localhost.example.org:1", true, true), ("tcp:+127.0.0.1:1", true, true), ("tcp:1270.0.0.1:1", true, true),
    ]) func whatLeavesTheMachineIsKnown(_ text: String, _ connecting: Bool, _ listening: Bool) throws {
        let address = try SocketAddress(text)
        #expect(address.leavesMachine(isListening: false) == connecting)
        #expect(address.leavesMachine(isListening: true) == listening)
    }

    @Test(arguments: [
        "unix:/run/ferry.socket", "unix:ferry", "unix:@ferry", "unix:with:colon", "tcp:localhost:7000", "tcp::7000",
        "tcp:127.0.0.1:0", "tcp:[::1]:65535", "tcp:[fe80::1%eth0]:1",
    ])
    func areReadAndWritten(_ text: String) throws {
        #expect(try SocketAddress(text).description == text)
    }

    @Test(arguments: [
        ("", "neither"), ("udp:host:1", "neither"), ("unix:", "path is missing"), ("unix:@", "path is missing"),
        ("unix:a\0b", "zero byte"), ("tcp:host", "port is missing"), ("tcp:host:", "port is a number"),
        ("tcp:host:65536", "port is a number"), ("tcp:host:-1", "port is a number"),
        ("tcp:host:+1", "port is a number"),
        ("tcp:host:7a", "port is a number"), ("tcp:::1:7000", "brackets"), ("tcp:a\0:1", "zero byte"),
    ])
    func whatIsNoneIsRefused(_ text: String, _ reason: String) {
        let error = #expect(throws: FerryError.self) { try SocketAddress(text) }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    private func expect(
        _ code: FerryError.Code, _ text: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Void
    ) async {
        let error = await #expect(throws: FerryError.self, sourceLocation: sourceLocation) { try await body() }
        #expect(error?.code == code, sourceLocation: sourceLocation)
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "")", sourceLocation: sourceLocation)
        #expect(error?.description.contains("errno") == false, sourceLocation: sourceLocation)
    }

    @Test func aPathThatIsTooLongIsRefused() async throws {
        let most = 107
        _ = try SocketTransport(.unix(String(repeating: "a", count: most)))
        await expect(.invalidConfiguration, "has 108 bytes; the system takes 107") {
            _ = try SocketTransport(.unix(String(repeating: "a", count: most + 1)))
        }
    }

    @Test func configurationsOutOfRangeAreRefused() async throws {
        for chunk in [0, -1, 65_536] {
            var configuration = SocketConfiguration()
            configuration.maximumChunkSize = chunk
            await expect(.invalidConfiguration, "maximumChunkSize is \(chunk)") {
                _ = try SocketTransport(.unix("a"), configuration: configuration)
            }
        }
        var configuration = SocketConfiguration()
        configuration.permissions = 0o1777
        await expect(.invalidConfiguration, "permissions") {
            _ = try SocketTransport(.unix("a"), configuration: configuration)
        }
        configuration = SocketConfiguration()
        configuration.deadPeerTimeout = .zero
        await expect(.invalidConfiguration, "deadPeerTimeout") {
            _ = try SocketTransport(.unix("a"), configuration: configuration)
        }
    }

    // MARK: Files

    @Test func theFileIsPrivateAndGoesWithTheListener() async throws {
        let folder = Folder()
        let path = folder.path + "/socket"
        let listener = try await SocketTransport(folder.socket).listen()
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        listener.close()
        #expect(!FileManager.default.fileExists(atPath: path))

        var configuration = SocketConfiguration()
        configuration.permissions = 0o666
        let open = try await SocketTransport(folder.socket, configuration: configuration).listen()
        let openMode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(openMode == 0o666)
        open.close()
    }

    @Test func aFileThatAProcessLeftBehindIsReplaced() async throws {
        let folder = Folder()
        // As a process leaves it that is killed: bound, and closed without being removed.
        let left = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (folder.path + "/socket").utf8) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(left, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(result == 0)
        Glibc.close(left)
        let transport = try SocketTransport(folder.socket)
        let listener = try await transport.listen()
        let link = try await transport.connect(timeout: .unreached)
        link.close()
        listener.close()
    }

    @Test func nobodyIsPushedAside() async throws {
        let folder = Folder()
        let transport = try SocketTransport(folder.socket)
        let listener = try await transport.listen()
        await expect(.transportUnavailable, "another program listens there") { _ = try await transport.listen() }
        // The probe does not harm the one that is there.
        let link = try await transport.connect(timeout: .unreached)
        link.close()
        listener.close()

        let port = try SocketTransport(.tcp("127.0.0.1", 0))
        let first = try await port.listen()
        let same = try SocketTransport(.tcp("127.0.0.1", try #require(port.port)))
        await expect(.transportUnavailable, "choose another port") { _ = try await same.listen() }
        first.close()
    }

    @Test func otherFilesAreLeftAlone() async throws {
        let folder = Folder()
        let path = folder.path + "/socket"
        try "precious".write(toFile: path, atomically: true, encoding: .utf8)
        await expect(.transportUnavailable, "no socket") { _ = try await SocketTransport(folder.socket).listen() }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
        await expect(.transportUnavailable, "folder does not exist") {
            _ = try await SocketTransport(.unix(folder.path + "/none/socket")).listen()
        }
    }

    /// Whoever removed the file and listens there anew keeps it when the first one ends.
    @Test func theFileOfAnotherStays() async throws {
        let folder = Folder()
        let path = folder.path + "/socket"
        let first = try await SocketTransport(folder.socket).listen()
        try FileManager.default.removeItem(atPath: path)
        let second = try await SocketTransport(folder.socket).listen()
        first.close()
        #expect(FileManager.default.fileExists(atPath: path))
        second.close()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// Of many that start at once one listens; the others are told, and nobody's file is lost.
    @Test func aRaceHasOneWinner() async throws {
        let folder = Folder()
        let transport = try SocketTransport(folder.socket)
        let listeners = await withTaskGroup(of: LinkListener?.self) { group in
            for _ in 0..<16 { group.addTask { @concurrent in try? await SocketTransport(folder.socket).listen() } }
            return await group.reduce(into: [LinkListener]()) { listeners, listener in
                if let listener { listeners.append(listener) }
            }
        }
        #expect(listeners.count == 1)
        let link = try await transport.connect(timeout: .unreached)
        link.close()
        for listener in listeners { listener.close() }
    }

    // MARK: Peers that are not there

    /// Time passes only in the pauses between two attempts.
    private func connectInVain(to address: SocketAddress) async throws {
        let time = VirtualTime()
        let transport = try SocketTransport(address, time: time)
        let isOver = Atomic(false)
        async let link: any Link = {
            defer { isOver.store(true, ordering: .relaxed) }
            return try await transport.connect(timeout: .seconds(20))
        }()
        try await until("the end of the attempts") {
            if let next = time.nextDeadline, next <= time.now + .milliseconds(500) { time.runNext() }
            return isOver.load(ordering: .relaxed)
        }
        try await link.close()
    }

    @Test func whatIsNotThereIsSaid() async throws {
        let folder = Folder()
        await expect(.peerNotFound, "No program listens at unix:") {
            try await connectInVain(to: folder.socket)
        }
        // What cannot become a socket is not waited for.
        let path = folder.path + "/file"
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        await expect(.transportUnavailable, "there is a file of that name that is no socket") {
            _ = try await SocketTransport(.unix(path)).connect(timeout: .unreached)
        }
        await expect(.transportUnavailable, "its folder does not exist") {
            _ = try await SocketTransport(.unix(path + "/s")).connect(timeout: .unreached)
        }
        await expect(.transportUnavailable, "its folder does not exist") {
            _ = try await SocketTransport(.unix(path + "-missing/s")).connect(timeout: .unreached)
        }
        await expect(.peerNotFound, "No program listens at tcp:127.0.0.1:1.") {
            try await connectInVain(to: .tcp("127.0.0.1", 1))
        }
        await expect(.transportUnavailable, "was not found") {
            _ = try await SocketTransport(.tcp("no-such-host.invalid", 1)).connect(timeout: .unreached)
        }
        await expect(.transportUnavailable, "no such address") {
            _ = try await SocketTransport(.tcp("192.0.2.1", 0)).listen()
        }
        await expect(.peerNotFound, "No program listens at tcp:localhost:0.") {
            try await connectInVain(to: .tcp("localhost", 0))
        }
    }

    /// The other side may be started second.
    @Test func whoComesFirstWaits() async throws {
        let folder = Folder()
        let time = VirtualTime()
        let transport = try SocketTransport(folder.socket, time: time)
        async let link = transport.connect(timeout: .unreached)
        try await until("a pause before the next attempt") {
            time.nextDeadline.map { $0 < .zero + .seconds(60) } == true
        }
        let listener = try await transport.listen()
        time.advance(by: .seconds(60))
        try await link.close()
        listener.close()
    }

    @Test func aNameMayStandForSeveralAddresses() async throws {
        let transport = try SocketTransport(.tcp("localhost", 0))
        let listener = try await transport.listen()
        let port = try #require(transport.port)
        for host in ["localhost", "127.0.0.1", ""] {
            let link = try await SocketTransport(.tcp(host, port)).connect(timeout: .unreached)
            #expect(link.peer == PeerIdentity("tcp:\(host):\(port)", certainty: .address))
            link.close()
        }
        for await link in listener.links {
            #expect(link.peer.certainty == .connection)
            #expect(link.peer.name.hasPrefix("tcp:"))
            break
        }
        listener.close()
    }
}
