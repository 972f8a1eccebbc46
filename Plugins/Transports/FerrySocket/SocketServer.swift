import Dispatch
import Ferry
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The sockets of a listener: accepts connections.
final class SocketServer: Sendable {
    private struct State {
        var watches: [Watch] = []
        var isClosed = false
        var accepted = 0
        /// Not kept: the app owns it, and its release ends it.
        weak var listener: LinkListener?
    }

    private let descriptors: [Descriptor]
    private let file: UnixFile?
    private let address: SocketAddress
    private let configuration: SocketConfiguration
    private let time: any TimeSource
    private let queue = DispatchQueue(label: "ferry.socket.server")
    private let state = Mutex(State())
    private let lingering = LingeringConnections()

    init(
        _ descriptors: [Descriptor], _ file: UnixFile?, _ address: SocketAddress, _ configuration: SocketConfiguration,
        _ time: any TimeSource
    ) {
        self.descriptors = descriptors
        self.file = file
        self.address = address
        self.configuration = configuration
        self.time = time
    }

    func begin(_ listener: LinkListener) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.listener = listener
            for descriptor in descriptors {
                let watch = Watch(descriptor, on: queue) { [self] _ in accept(from: descriptor) }
                state.watches.append(watch)
                watch.want(.readable)
            }
        }
    }

    func close() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            // Before the socket is closed, so that the next listener there finds no file of ours.
            file?.remove()
            if state.watches.isEmpty { for descriptor in descriptors { descriptor.close() } }
            for (watch, descriptor) in zip(state.watches, descriptors) {
                ClosingSockets.shared.begin()
                watch.cancel {
                    descriptor.close()
                    ClosingSockets.shared.end()
                }
            }
            state.watches = []
        }
    }

    private func accept(from descriptor: Descriptor) {
        for _ in 0..<16 {
            guard let listener = state.withLock({ $0.isClosed ? nil : $0.listener }) else { return }
            do throws(Problem) {
                let accepted = try descriptor.accept()
                if case .tcp = address.kind { accepted.tuneTCP(configuration) }
                let connection = SocketConnection(owning: accepted, configuration, time, lingering)
                let (peer, source) = peer(of: accepted)
                let link = SocketLink(connection, peer: peer, role: .responder, source: source)
                if !listener.offer(link) { link.close() }
            } catch {
                if error == .interrupted || error == .aborted { continue }
                if error.isShortage { return pause() }
                // Every waiting connection has been accepted.
                if error == .wouldBlock { return }
                // The system took the socket away; it would say so again and again.
                return listener.fail(
                    FerryError(.transportUnavailable, "Cannot listen at \(address) any more: \(error.text)."))
            }
        }
    }

    /// Connections wait while there are no descriptors for them.
    private func pause() {
        let watches = state.withLock { $0.watches }
        for watch in watches { watch.ignore(.readable) }
        time.schedule(at: time.now + .milliseconds(100)) { for watch in watches { watch.want(.readable) } }
    }

    private func peer(of accepted: Descriptor) -> (PeerIdentity, LinkSource?) {
        let number = state.withLock { state in
            state.accepted += 1
            return state.accepted
        }
        if case .tcp = address.kind, let (host, port) = accepted.name(ofPeer: true) {
            let peer = PeerIdentity(SocketAddress.tcp(host, port).description, certainty: .connection)
            return (peer, .address(Self.network(of: host)))
        }
        return (
            PeerIdentity("\(address)#\(number)", certainty: .connection),
            accepted.peerCredentials.map { .user($0.user, process: $0.process) }
        )
    }

    /// An IPv4 address as it is. Of an IPv6 address the first 64 bits: a host has all of the others to choose from.
    static func network(of host: String) -> String {
        var bytes = in6_addr()
        let address = host.prefix { $0 != "%" }
        guard address.contains(":"), inet_pton(AF_INET6, String(address), &bytes) == 1 else { return host }
        let first = withUnsafeBytes(of: &bytes) { Array($0.prefix(8)) }
        return first.hexadecimal() + "/64"
    }
}

/// The sockets of listeners that were closed, as long as the poller may look at them: the system keeps their addresses until then.
final class ClosingSockets: Sendable {
    static let shared = ClosingSockets()

    private struct State {
        var count = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    func begin() { state.withLock { $0.count += 1 } }

    func end() {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.count -= 1
            guard state.count == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns once none is left, which the poller's next turn brings about.
    func areGone() async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count == 0
            }
            if isDone { continuation.resume() }
        }
    }
}

/// The connections of a listener that this side has closed, and that wait for their peers to take the sent chunks. Peers that
/// never read must not hold a descriptor each for ``SocketConfiguration/linger``: the oldest ends at once when there are more
/// than ``most``.
final class LingeringConnections: Sendable {
    static let most = 64

    private struct Entry { weak var connection: SocketConnection? }

    private let entries = Mutex<[Entry]>([])

    func add(_ connection: SocketConnection) {
        let oldest = entries.withLock { entries -> SocketConnection? in
            entries.append(Entry(connection: connection))
            guard entries.count > Self.most else { return nil }
            entries.removeAll { $0.connection?.isLingering != true }
            return entries.count > Self.most ? entries.removeFirst().connection : nil
        }
        oldest?.endLingering()
    }
}
