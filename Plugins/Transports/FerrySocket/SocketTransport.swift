@preconcurrency import Dispatch
public import Ferry
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Links over sockets between processes of one machine, or of two.
///
///     let transport = try SocketTransport(SocketAddress("unix:/tmp/ferry.socket"))
///
/// - A Unix socket is of the type `SOCK_SEQPACKET`, one chunk a packet; on Darwin, which has no such Unix sockets, and over TCP
///   it is a stream in which each chunk follows its length (`Documentation/Formats.md`).
/// - Backpressure is the system's: a chunk is refused while the socket's buffer is full. A receiver that pauses stops reading,
///   and does not notice an end before it goes on.
/// - The connecting side knows its peer by the address that it connected to (``/Ferry/PeerIdentity/Certainty/address``: any
///   program that listens there can claim it). The listening side knows its peers for one connection only: neither an ephemeral port nor the
///   process and user that the system tells of a Unix socket's other end name one peer that comes again.
/// - Nothing is encrypted, and no peer authenticated but by the permissions of a Unix socket's file.
public final class SocketTransport: Transport {
    private let address: SocketAddress
    private let configuration: SocketConfiguration
    private let time: any TimeSource
    private let boundPort = Mutex<UInt16?>(nil)

    /// Makes a transport; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - address: where to listen, or to connect to.
    ///   - configuration: how sockets are used.
    ///   - time: where the time comes from.
    /// - Throws: `invalidConfiguration` for a configuration out of range, or a path that is too long.
    public init(
        _ address: SocketAddress, configuration: SocketConfiguration = SocketConfiguration(),
        time: any TimeSource = SystemTime()
    ) throws(FerryError) {
        try configuration.check()
        if case .unix(let path) = address.kind { _ = try SystemAddress(unixPath: path) }
        self.address = address
        self.configuration = configuration
        self.time = time
    }

    /// The TCP port at which this transport listens, or listened last; nil before. With port 0 it is the one that the system
    /// chose, and to which this transport connects as well.
    public var port: UInt16? { boundPort.withLock { $0 } }

    // MARK: Listening

    /// Listens until the listener is closed or released, or the task that takes its links is cancelled. The file of a Unix
    /// socket is removed then. One that a process left behind that was killed is replaced.
    ///
    /// - Throws: `transportUnavailable` with the obstacle; `cancelled`.
    public func listen() async throws(FerryError) -> LinkListener {
        // A listener that this process has just closed is not in the way.
        await ClosingSockets.shared.areGone()
        let server: SocketServer
        switch address.kind {
        case .unix(let path): server = try listen(path)
        case .tcp(let host, let port): server = try await listen(host, port)
        }
        let listener = LinkListener(acceptTimeout: configuration.acceptTimeout, time: time) { server.close() }
        server.begin(listener)
        return listener
    }

    private func listen(_ path: String) throws(FerryError) -> SocketServer {
        let system = try SystemAddress(unixPath: path)
        let descriptor: Descriptor
        do throws(Problem) { descriptor = try Descriptor.open(system.family, Descriptor.unixKind) } catch {
            throw cannotListen(error.text)
        }
        do throws(FerryError) {
            let file = try UnixFile.listen(descriptor, at: path, system, permissions: configuration.permissions)
            return SocketServer([descriptor], file, address, configuration, time)
        } catch {
            descriptor.close()
            throw error
        }
    }

    /// A name may stand for several addresses; all that can be had are listened at.
    private func listen(_ host: String, _ port: UInt16) async throws(FerryError) -> SocketServer {
        var descriptors: [Descriptor] = []
        var failure = "no address was found for it"
        var port = port
        let found = try await Resolver.resolve(host, port, isListening: true, until: time.now + .seconds(30), time)
        for address in found {
            do throws(Problem) {
                let descriptor = try Descriptor.open(address.family, .stream)
                descriptors.append(descriptor)
                descriptor.set(SOL_SOCKET, SO_REUSEADDR, 1)
                if address.family == AF_INET6 { descriptor.set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
                do throws(Problem) {
                    try address.with(port: port).bind(descriptor)
                    try descriptor.listen()
                } catch {
                    descriptors.removeLast().close()
                    throw error
                }
                if port == 0 { port = descriptor.name(ofPeer: false)?.port ?? 0 }
            } catch {
                failure = error == .inUse ? "another program listens there. End it, or choose another port" : error.text
                // A port that is taken at one of the host's addresses is taken.
                if error == .inUse {
                    for descriptor in descriptors { descriptor.close() }
                    throw cannotListen(failure)
                }
            }
        }
        guard !descriptors.isEmpty else { throw cannotListen(failure) }
        boundPort.withLock { [port] in $0 = port }
        return SocketServer(descriptors, nil, address, configuration, time)
    }

    private func cannotListen(_ reason: String) -> FerryError {
        FerryError(.transportUnavailable, "Cannot listen at \(address): \(reason).")
    }

    // MARK: Connecting

    /// Connects, as soon as a peer listens there.
    ///
    /// - Throws: `peerNotFound` when none does in time, `timedOut` when the other side does not answer,
    ///   `transportUnavailable`, which names the missing part, `cancelled`.
    public func connect(timeout: Duration) async throws(FerryError) -> any Link {
        try await SocketConnector(address, configuration, time) { [self] in port }.connect(until: time.now + timeout)
    }

    /// Connects to the address again, if it is the peer's.
    ///
    /// - Throws: as ``connect(timeout:)``; `peerNotFound` for an identity of another address.
    public func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        guard peer.certainty > .connection else { throw .cannotBeRecognized(peer) }
        guard peer == PeerIdentity(address.description, certainty: .address) else {
            throw FerryError(.peerNotFound, "This transport connects to \(address), and not to peer \(peer).")
        }
        return try await connect(timeout: timeout)
    }
}
