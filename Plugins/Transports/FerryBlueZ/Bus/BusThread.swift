#if BlueZ
    import Glibc
    import Synchronization

    /// A thread that waits on descriptors and deadlines, and runs everything that touches the bus. Also an executor, so
    /// that an actor can live on it: nothing of it ever waits on a thread of Swift's concurrency.
    final class BusThread: SerialExecutor {
        private enum Job {
            case task(UnownedJob)
            case body(@Sendable () -> Void)
        }

        private struct State {
            var jobs: [Job] = []
            var isStopped = false
        }

        private struct Timer {
            let id: UInt64
            let deadline: UInt64
            let body: () -> Void
        }

        private let state = Mutex(State())
        /// A pipe that wakes the thread: its two ends.
        private let wakeReader: Int32
        private let wakeWriter: Int32
        private let identity = Atomic<UInt>(0)

        // Of the thread alone.
        nonisolated(unsafe) private var sources: [Int32: (events: Int16, handler: (Int16) -> Void)] = [:]
        /// The polled descriptors: made anew when the sources have changed.
        nonisolated(unsafe) private var polled: [pollfd] = []
        /// The sources whose handlers are called in any case.
        nonisolated(unsafe) private var due: Set<Int32> = []
        nonisolated(unsafe) private var timers: [Timer] = []
        nonisolated(unsafe) private var nextTimer: UInt64 = 1
        /// Called before each wait; returns the next time, in microseconds of `CLOCK_MONOTONIC`, to be called again.
        nonisolated(unsafe) var beforeWaiting: () -> UInt64? = { nil }

        init() throws(BusError) {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw BusError("No descriptors for the bus", -errno) }
            (wakeReader, wakeWriter) = (ends[0], ends[1])
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { argument in
                    guard let argument else { return nil }
                    Unmanaged<BusThread>.fromOpaque(argument).takeRetainedValue().run()
                    return nil
                }, Unmanaged.passRetained(self).toOpaque())
            guard result == 0 else {
                Unmanaged.passUnretained(self).release()
                throw BusError("No thread for the bus", -result)
            }
            pthread_detach(thread)
        }

        deinit {
            close(wakeReader)
            close(wakeWriter)
        }

        static var now: UInt64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
        }

        private static var current: UInt { UInt(pthread_self()) }
        var isCurrent: Bool { identity.load(ordering: .relaxed) == Self.current }

        // MARK: From any thread

        func enqueue(_ job: consuming ExecutorJob) { add(.task(UnownedJob(job))) }

        func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

        func checkIsolated() { precondition(isCurrent, "not on the bus thread") }

        /// Runs `body` on the thread, after all work added before.
        func execute(_ body: @escaping @Sendable () -> Void) { add(.body(body)) }

        /// Ends the thread after the jobs that wait.
        func stop() {
            state.withLock { $0.isStopped = true }
            signal()
        }

        private func add(_ job: Job) {
            let wasEmpty = state.withLock { state in
                state.jobs.append(job)
                return state.jobs.count == 1
            }
            if wasEmpty { signal() }
        }

        private func signal() {
            var one: UInt8 = 1
            _ = write(wakeWriter, &one, 1)
        }

        // MARK: On the thread

        /// Calls `handler` with poll's events until ``unwatch(_:)``; a second call replaces the first.
        func watch(_ descriptor: Int32, _ events: Int32, handler: @escaping (Int16) -> Void) {
            sources[descriptor] = (Int16(truncatingIfNeeded: events), handler)
            polled = []
        }

        func unwatch(_ descriptor: Int32) {
            sources[descriptor] = nil
            polled = []
            due.remove(descriptor)
        }

        /// Calls a source's handler again, even if its descriptor is not ready, after all others have had their turn.
        func callAgain(_ descriptor: Int32) { due.insert(descriptor) }

        /// Calls `body` once, after `delay`.
        @discardableResult
        func schedule(after delay: Duration, _ body: @escaping () -> Void) -> UInt64 {
            let (seconds, attoseconds) = delay.components
            let microseconds = UInt64(max(0, seconds)) * 1_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000_000
            let id = nextTimer
            nextTimer += 1
            timers.append(Timer(id: id, deadline: Self.now + microseconds, body: body))
            return id
        }

        func cancel(_ timer: UInt64) { timers.removeAll { $0.id == timer } }

        private func run() {
            identity.store(Self.current, ordering: .relaxed)
            while true {
                let isStopped = runJobs()
                if isStopped { break }
                runTimers()
                let next = beforeWaiting()
                guard state.withLock({ $0.jobs.isEmpty && !$0.isStopped }) else { continue }
                var deadline = next ?? .max
                for timer in timers { deadline = min(deadline, timer.deadline) }
                let now = Self.now
                let wait: Int32 =
                    deadline == .max ? -1 : deadline <= now ? 0 : Int32(min((deadline - now + 999) / 1000, 60_000))
                if polled.isEmpty {
                    polled.append(pollfd(fd: wakeReader, events: Int16(POLLIN), revents: 0))
                    for (descriptor, source) in sources {
                        polled.append(pollfd(fd: descriptor, events: source.events, revents: 0))
                    }
                }
                let count = poll(&polled, nfds_t(polled.count), due.isEmpty ? wait : 0)
                guard count > 0 || (count == 0 && !due.isEmpty) else { continue }
                // Handlers change the watched and the due sources.
                let (entries, due) = (polled, due)
                self.due = []
                if entries[0].revents != 0 { drainWake() }
                for entry in entries.dropFirst() where entry.revents != 0 || due.contains(entry.fd) {
                    sources[entry.fd]?.handler(entry.revents)
                }
            }
            sources = [:]
            polled = []
            due = []
            timers = []
            beforeWaiting = { nil }
        }

        private func drainWake() {
            withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
                while read(wakeReader, buffer.baseAddress, buffer.count) == buffer.count {}
            }
        }

        private func runJobs() -> Bool {
            while true {
                let (jobs, isStopped) = state.withLock { state in
                    defer { state.jobs = [] }
                    return (state.jobs, state.isStopped)
                }
                if jobs.isEmpty { return isStopped }
                for job in jobs {
                    switch job {
                    case .task(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                    case .body(let body): body()
                    }
                }
            }
        }

        private func runTimers() {
            guard !timers.isEmpty else { return }
            let now = Self.now
            guard timers.contains(where: { $0.deadline <= now }) else { return }
            let due = timers.filter { $0.deadline <= now }.sorted { $0.deadline < $1.deadline }
            timers.removeAll { $0.deadline <= now }
            for timer in due { timer.body() }
        }
    }
#endif
