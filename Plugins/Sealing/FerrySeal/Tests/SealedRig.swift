#if Seal
    import Ferry
    import FerrySeal
    import FerrySequenced
    import FerryTesting
    import Synchronization
    import TestSupport

    /// The framings under a seal.
    enum BaseFraming: String, CaseIterable, Sendable {
        case endOfMessage, lengthPrefix, sequenced

        /// A session of the framing, sealed or bare.
        func session(_ sealing: NoiseSealing?, limits: Limits = Limits(), id: UInt32) -> any FramingSession {
            func sealed(_ framing: some Framing) -> any FramingSession {
                guard let sealing else { return framing.makeSession(limits: limits) }
                return SealedFraming(framing, by: sealing).makeSession(limits: limits)
            }
            return switch self {
            case .endOfMessage: sealed(EndOfMessageFraming())
            case .lengthPrefix: sealed(LengthPrefixFraming())
            case .sequenced: sealed(SequencedFraming(sessionID: { id }))
            }
        }
    }

    /// A channel's core, what has become of its messages, and what it has read.
    final class SealedEnd: Sendable {
        let core: ChannelCore
        private struct State {
            var outcomes: [Result<Void, FerryError>?] = []
            var read: [[UInt8]] = []
            var failures: [FerryError] = []
            var hasEnded = false
        }
        private let state = Mutex(State())

        init(_ link: any Link, _ session: any FramingSession, time: any TimeSource, limits: Limits = Limits()) {
            core = ChannelCore(link: link, session: session, chunkSize: .max, limits: limits, time: time)
            core.open()
        }

        @discardableResult
        func send(_ payload: [UInt8], options: SendOptions = SendOptions()) -> MessageID {
            let id = core.makeID()
            let place = state.withLock { state in
                state.outcomes.append(nil)
                return state.outcomes.count - 1
            }
            core.submit(payload, as: id, options: options) { [self] result in
                state.withLock { $0.outcomes[place] = result }
            }
            return id
        }

        /// Reads what has arrived. Returns whether there was anything.
        @discardableResult
        func take() -> Bool {
            var hasRead = false
            while let delivery = core.take() {
                switch delivery {
                case .message(let payload): state.withLock { $0.read.append(payload) }
                case .failure(let error): state.withLock { $0.failures.append(error) }
                case .end:
                    state.withLock { $0.hasEnded = true }
                    return hasRead
                }
                hasRead = true
            }
            return hasRead
        }

        var read: [[UInt8]] { state.withLock { $0.read } }
        var failures: [FerryError] { state.withLock { $0.failures } }
        var outcomes: [Result<Void, FerryError>?] { state.withLock { $0.outcomes } }
        var successes: Int { outcomes.count { if case .success? = $0 { true } else { false } } }
        var pending: Int { outcomes.count { $0 == nil } }
    }

    /// Two sealed channels over links in memory, under virtual time.
    final class SealedRig: Sendable {
        let time = VirtualTime()
        let links: (a: MemoryLink, b: MemoryLink)
        let a: SealedEnd
        let b: SealedEnd

        init(
            _ base: BaseFraming, _ meeting: NoiseSealTests.Meeting = .ik, chunkSize: Int = 20, queueDepth: Int = 4,
            limits: Limits = Limits()
        ) {
            links = MemoryLink.makePair(maximumChunkSize: chunkSize, queueDepth: queueDepth)
            a = SealedEnd(links.a, base.session(meeting.connecting, limits: limits, id: 1), time: time, limits: limits)
            b = SealedEnd(
                links.b, base.session(meeting.accepting, limits: limits, id: 1000), time: time, limits: limits)
        }

        /// Moves chunks and lets time pass until nothing waits, for `seconds` at most.
        func run(seconds: Int = 30) {
            for _ in 0..<seconds * 10 {
                settle()
                time.advance(by: .milliseconds(100))
            }
            settle()
        }

        func settle() {
            var isBusy = true
            while isBusy {
                isBusy = links.a.deliver()
                if links.b.deliver() { isBusy = true }
                if a.take() { isBusy = true }
                if b.take() { isBusy = true }
            }
        }
    }
#endif
