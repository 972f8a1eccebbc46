import Ferry

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the system said of a call that failed, as it is told to people.
struct Problem: Error, Equatable {
    let number: Int32

    /// The calling thread's latest.
    init() { number = errno }

    init(_ number: Int32) { self.number = number }

    /// A clause for the end of a sentence, without its full stop.
    var text: String {
        switch number {
        case EACCES, EPERM: "the permission is missing"
        case EMFILE: "this process has too many files open"
        case ENFILE: "the system has too many files open"
        case ECONNREFUSED: "no program listens there"
        case ECONNRESET, EPIPE: "the peer closed it"
        case EAGAIN, EWOULDBLOCK: "too many others wait to be let in"
        case ETIMEDOUT: "the peer does not answer any more"
        case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN: "there is no way to it through the network"
        case EADDRINUSE: "it is in use"
        case EADDRNOTAVAIL: "this machine has no such address"
        case EAFNOSUPPORT: "this system does not support such addresses"
        default: "the system says: \(systemText)"
        }
    }

    /// Both systems keep these texts for each thread, or forever.
    private var systemText: String { strerror(number).map { String(cString: $0) } ?? "error \(number)" }

    /// Why an open connection has ended.
    var ended: FerryError { FerryError(.disconnected, "The connection ended: \(text).") }

    /// Whether an attempt to connect may go better later: the peer may not have begun to listen.
    var mayPass: Bool {
        [ECONNREFUSED, ENOENT, EAGAIN, EWOULDBLOCK, ENETUNREACH, EHOSTUNREACH, ENETDOWN, ECONNRESET, ETIMEDOUT]
            .contains(number)
    }

    /// Whether accepting may go better later.
    var isShortage: Bool { [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(number) }

    static let inProgress = Problem(EINPROGRESS)
    static let inUse = Problem(EADDRINUSE)
    static let refused = Problem(ECONNREFUSED)
    static let missing = Problem(ENOENT)
    static let reset = Problem(ECONNRESET)
    static let wouldBlock = Problem(EAGAIN)
    static let interrupted = Problem(EINTR)
    static let aborted = Problem(ECONNABORTED)
    static let timedOut = Problem(ETIMEDOUT)
    static let wrongKind = Problem(EPROTOTYPE)
}
