import Ferry

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A socket's file descriptor and the calls on it. Its owner closes it, once.
struct Descriptor: Sendable {
    let number: Int32
    let kind: Kind
    /// Tells when it can be read or written.
    let poller: Poller

    /// How chunks cross.
    enum Kind: Sendable {
        /// Packets, whose boundaries the system keeps.
        case packets
        /// A stream, in which each chunk follows its length.
        case stream
    }

    /// How chunks cross a Unix socket. `SOCK_SEQPACKET` keeps their boundaries; Darwin has it for no Unix socket.
    static var unixKind: Kind {
        #if canImport(Darwin)
            .stream
        #else
            .packets
        #endif
    }

    /// A new socket that never blocks and is closed when another program takes this one's place.
    static func open(_ family: Int32, _ kind: Kind) throws(Problem) -> Descriptor {
        #if canImport(Darwin)
            let type = kind == .packets ? SOCK_SEQPACKET : SOCK_STREAM
        #elseif canImport(Glibc)
            let type = Int32((kind == .packets ? SOCK_SEQPACKET : SOCK_STREAM).rawValue)
        #else
            let type = kind == .packets ? SOCK_SEQPACKET : SOCK_STREAM
        #endif
        let poller = try Poller.shared()
        let number = socket(family, type, 0)
        guard number >= 0 else { throw Problem() }
        return Descriptor(owning: number, kind, poller)
    }

    init(owning number: Int32, _ kind: Kind, _ poller: Poller) {
        self.number = number
        self.kind = kind
        self.poller = poller
        prepare()
    }

    private func prepare() {
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK)
        #if canImport(Darwin)
            set(SOL_SOCKET, SO_NOSIGPIPE, 1)
        #endif
    }

    func close() { Self.closeFile(number) }

    static func closeFile(_ number: Int32) {
        #if canImport(Darwin)
            _ = Darwin.close(number)
        #elseif canImport(Musl)
            _ = Musl.close(number)
        #else
            _ = Glibc.close(number)
        #endif
    }

    // MARK: Options

    @discardableResult
    func set(_ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
        var value = value
        return setsockopt(number, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// What TCP needs to be a link: small chunks leave at once, a peer that is gone is noticed, and little waits in the
    /// system, so that an urgent chunk does not stand behind megabytes.
    func tuneTCP(_ configuration: SocketConfiguration) {
        let seconds = Int32(clamping: configuration.deadPeerTimeout.components.seconds)
        let tcp = Int32(IPPROTO_TCP)
        set(tcp, TCP_NODELAY, 1)
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(tcp, TCP_KEEPCNT, 3)
        set(tcp, TCP_KEEPINTVL, max(1, seconds / 4))
        #if canImport(Darwin)
            set(tcp, TCP_KEEPALIVE, max(1, seconds / 4))
        #else
            set(tcp, TCP_KEEPIDLE, max(1, seconds / 4))
            set(tcp, TCP_USER_TIMEOUT, seconds * 1000)
        #endif
        set(tcp, TCP_NOTSENT_LOWAT, 128 << 10)
    }

    // MARK: Bytes

    /// How a call on the socket came out.
    enum Outcome {
        case count(Int)
        /// Nothing can be done at present.
        case blocked
        case failed(Problem)

        fileprivate init(_ result: Int) {
            if result >= 0 {
                self = .count(result)
            } else if errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS {
                self = .blocked
            } else {
                self = .failed(Problem())
            }
        }
    }

    #if canImport(Darwin)
        private static let sendFlags: Int32 = 0
        private static let receiveFlags: Int32 = 0
    #else
        private static let sendFlags = Int32(truncatingIfNeeded: MSG_NOSIGNAL)
        /// The length of a packet, also when the buffer is shorter.
        private static let receiveFlags = Int32(truncatingIfNeeded: MSG_TRUNC)
    #endif

    /// Reads the available bytes. Of a packet that is longer than the buffer, the count says how long it was.
    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        while true {
            let count = recv(number, buffer.baseAddress, buffer.count, kind == .packets ? Self.receiveFlags : 0)
            if count < 0, errno == EINTR { continue }
            return Outcome(count)
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        while true {
            let count = send(number, bytes.baseAddress, bytes.count, Self.sendFlags)
            if count < 0, errno == EINTR { continue }
            return Outcome(count)
        }
    }

    /// Writes a chunk after its length, or as much of the two as the system takes.
    func write(length: (UInt8, UInt8), _ chunk: UnsafeRawBufferPointer) -> Outcome {
        var length = length
        return withUnsafeMutableBytes(of: &length) { length in
            var parts = (
                iovec(iov_base: length.baseAddress, iov_len: length.count),
                iovec(iov_base: UnsafeMutableRawPointer(mutating: chunk.baseAddress), iov_len: chunk.count)
            )
            return withUnsafeMutablePointer(to: &parts) { parts in
                parts.withMemoryRebound(to: iovec.self, capacity: 2) { parts in
                    var message = msghdr()
                    message.msg_iov = parts
                    message.msg_iovlen = 2
                    while true {
                        let count = sendmsg(number, &message, Self.sendFlags)
                        if count < 0, errno == EINTR { continue }
                        return Outcome(count)
                    }
                }
            }
        }
    }

    /// Says that nothing more will be written.
    func finishWriting() { _ = shutdown(number, Int32(SHUT_WR)) }

    /// The user and the process at the other end of a Unix socket, as the kernel tells them; nil where it does not.
    var peerCredentials: (user: UInt32, process: Int32?)? {
        #if canImport(Darwin)
            var (user, group, process) = (uid_t(), gid_t(), pid_t())
            var size = socklen_t(MemoryLayout<pid_t>.size)
            guard getpeereid(number, &user, &group) == 0 else { return nil }
            let isKnown = getsockopt(number, SOL_LOCAL, LOCAL_PEERPID, &process, &size) == 0 && process > 0
            return (user, isKnown ? process : nil)
        #else
            // Process, user and group: `struct ucred` of <sys/socket.h>. A process of another namespace is 0.
            var credentials: (Int32, UInt32, UInt32) = (0, 0, 0)
            var size = socklen_t(MemoryLayout<(Int32, UInt32, UInt32)>.size)
            guard getsockopt(number, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return nil }
            return (credentials.1, credentials.0 > 0 ? credentials.0 : nil)
        #endif
    }

    /// The error that the socket keeps, if any: how a connection attempt came out.
    func takeProblem() -> Problem? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(number, SOL_SOCKET, SO_ERROR, &value, &size) == 0 else { return Problem() }
        return value == 0 ? nil : Problem(value)
    }
}
