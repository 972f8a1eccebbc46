import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tells when descriptors can be read or written: one thread for the process, in poll(2).
///
/// It stands where a `DispatchSource` would: on Linux, libdispatch loses count of descriptors that hang up while others come
/// and go, and crashes (swift-corelibs-libdispatch, issue 949). Each turn costs as much as there are descriptors, which suits
/// hundreds of them.
final class Poller: Sendable {
    private static let existing = Mutex<Poller?>(nil)

    /// The process's. Throws when there are no descriptors or threads left to make it.
    static func shared() throws(Problem) -> Poller {
        try existing.withLock { existing throws(Problem) in
            if let poller = existing { return poller }
            let poller = try Poller()
            existing = poller
            return poller
        }
    }

    private let watches = Mutex<[Watch]>([])
    /// A byte in it ends the thread's wait.
    private let bell: (reading: Int32, writing: Int32)
    private let isRung = Atomic(false)

    private init() throws(Problem) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Problem() }
        bell = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        guard let problem = begin() else { return }
        for end in ends { Descriptor.closeFile(end) }
        throw problem
    }

    /// Starts the thread, which lasts as long as the process.
    private func begin() -> Problem? {
        let context = Unmanaged.passRetained(self)
        #if canImport(Darwin)
            var thread: pthread_t?
            let result = pthread_create(&thread, nil, { Poller.run($0) }, context.toOpaque())
            let made = thread
        #else
            var thread = pthread_t()
            let result = pthread_create(&thread, nil, { $0.flatMap { Poller.run($0) } }, context.toOpaque())
            let made: pthread_t? = thread
        #endif
        guard result == 0, let made else {
            context.release()
            return Problem(result)
        }
        pthread_detach(made)
        return nil
    }

    private static func run(_ context: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
        // Signals are for the threads of those who expect them.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        let poller = Unmanaged<Poller>.fromOpaque(context).takeRetainedValue()
        while true { poller.turn() }
    }

    fileprivate func add(_ watch: Watch) { watches.withLock { $0.append(watch) } }

    /// Makes the thread read the wanted events again.
    fileprivate func ring() {
        guard !isRung.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var byte: UInt8 = 0
        _ = write(bell.writing, &byte, 1)
    }

    private func turn() {
        var polled: [pollfd] = [pollfd(fd: bell.reading, events: Int16(POLLIN), revents: 0)]
        var watched: [Watch] = []
        watches.withLock { watches in
            watches.removeAll { $0.isGone }
            for watch in watches {
                guard let question = watch.question else { continue }
                polled.append(question)
                watched.append(watch)
            }
        }
        guard poll(&polled, nfds_t(polled.count), -1) > 0 else { return }
        if polled[0].revents != 0 {
            var bytes: (UInt64, UInt64) = (0, 0)
            while read(bell.reading, &bytes, 16) == 16 {}
            isRung.store(false, ordering: .sequentiallyConsistent)
        }
        for (watch, answer) in zip(watched, polled.dropFirst()) where answer.revents != 0 { watch.tell(answer.revents) }
    }
}

/// What one owner wants to know of a descriptor. The poller keeps it until it is cancelled.
final class Watch: Sendable {
    struct Events: OptionSet {
        let rawValue: UInt8
        static let readable = Events(rawValue: 1)
        static let writable = Events(rawValue: 2)
    }

    private struct State {
        var wanted: Events = []
        /// What the owner is being told, and cannot be told again before it has heard.
        var beingTold: Events = []
        var isCancelled = false
        var whenGone: (@Sendable () -> Void)?
    }

    private let descriptor: Int32
    private let poller: Poller
    private let queue: DispatchQueue
    private let handler: @Sendable (Events) -> Void
    private let state = Mutex(State())

    /// Watches a descriptor for nothing yet.
    ///
    /// - Parameter handler: called on the queue with the wanted events that are possible; also when the descriptor has
    ///   hung up or failed, which the next call on it tells.
    init(_ descriptor: Descriptor, on queue: DispatchQueue, handler: @escaping @Sendable (Events) -> Void) {
        self.descriptor = descriptor.number
        self.poller = descriptor.poller
        self.queue = queue
        self.handler = handler
        poller.add(self)
    }

    func want(_ events: Events) {
        let isNews = state.withLock { state in
            defer { state.wanted.formUnion(events) }
            return !state.wanted.isSuperset(of: events)
        }
        if isNews { poller.ring() }
    }

    /// Stops reporting these events, but for a call that is under way. The thread may read this later.
    func ignore(_ events: Events) { state.withLock { $0.wanted.subtract(events) } }

    /// Ends the watch. Calls `whenGone` on the queue once the poller does not use the descriptor any more: the place to close it.
    func cancel(whenGone: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard !state.isCancelled else { return }
            state.isCancelled = true
            state.whenGone = whenGone
        }
        poller.ring()
    }

    /// What the poller is to ask of it, if anything.
    fileprivate var question: pollfd? {
        state.withLock { state in
            let events = state.wanted.subtracting(state.beingTold)
            guard !state.isCancelled, !events.isEmpty else { return nil }
            return pollfd(fd: descriptor, events: events.asked, revents: 0)
        }
    }

    /// Whether it was cancelled, which is noted.
    fileprivate var isGone: Bool {
        let (isCancelled, whenGone) = state.withLock { ($0.isCancelled, $0.whenGone.take()) }
        if let whenGone { queue.async(execute: whenGone) }
        return isCancelled
    }

    fileprivate func tell(_ answer: Int16) {
        let events = state.withLock { state -> Events in
            let events = Events(answer: answer).intersection(state.wanted.subtracting(state.beingTold))
            guard !state.isCancelled else { return [] }
            state.beingTold.formUnion(events)
            return events
        }
        guard !events.isEmpty else { return }
        queue.async { [self] in
            handler(events)
            let isWanted = state.withLock { state in
                state.beingTold.subtract(events)
                return !state.wanted.isDisjoint(with: events)
            }
            if isWanted { poller.ring() }
        }
    }
}

extension Watch.Events {
    fileprivate var asked: Int16 {
        Int16((contains(.readable) ? Int32(POLLIN) : 0) | (contains(.writable) ? Int32(POLLOUT) : 0))
    }

    /// An end or an error counts as every event.
    fileprivate init(answer: Int16) {
        let answer = Int32(answer)
        self = []
        if answer & ~Int32(POLLOUT) != 0 { insert(.readable) }
        if answer & ~Int32(POLLIN) != 0 { insert(.writable) }
    }
}
