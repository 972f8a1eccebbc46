/// How long the values to one peer may be, judged by the fate of earlier ones.
///
/// Some peers stall or lose the connection on values that do not fit one link-layer packet of 27 bytes: devices without data
/// length extension whose firmware fails to put fragments together. A failure with longer values limits them to 20 bytes, which
/// every peer must take (ATT_MTU 23, Core Specification 5.4, Vol 3, Part G, 5.2.1). The limit then doubles with each number of
/// values that passes, and more slowly at sizes that have failed.
///
/// It has no clock and no I/O: ``ValueSizer`` counts and times.
struct ValueSizing: Sendable, Equatable {
    /// The limit after a failure, in bytes; values of this size never count against longer ones.
    static let smallest = 20
    /// Values after which the limit doubles, where the doubled size has not failed.
    static let step = 256
    /// Values after which a size that has failed once is tried again. Four times as many after each further failure.
    static let firstTrial = 1024
    /// The most values before a size that has failed is tried again.
    static let longestTrial = 65_536
    /// A connection that is lost before it has carried this many values may have died of their length.
    static let early = 64
    /// Values after a limit has fallen that may wait in queues behind the longer ones: what fails before has failed already.
    static let queued = 64
    /// Connections in a row that must be lost early, with longer values, before their length is suspected.
    static let suspiciousLosses = 2

    private enum Judgement: Sendable, Equatable {
        case trusted(earlyLosses: Int)
        case suspected(Suspicion)
    }

    private struct Suspicion: Sendable, Equatable {
        /// Bytes; `nil` while values of full length are on trial.
        var limit: Int?
        /// The shortest values that have failed, in bytes.
        var failing: Int
        /// Values before `failing` is tried, or before the suspicion ends.
        var trial: Int

        var nextLimit: Int? { limit.flatMap { $0 * 2 < 512 ? $0 * 2 : nil } }
    }

    private var judgement = Judgement.trusted(earlyLosses: 0)

    /// The most bytes of a value; `nil` for as many as ATT_MTU allows.
    var limit: Int? {
        if case .suspected(let suspicion) = judgement { suspicion.limit } else { nil }
    }

    /// Whether there is nothing to remember.
    var isClean: Bool { judgement == .trusted(earlyLosses: 0) }

    /// Values that have to pass, from now, until ``didPass()`` is to be called; `nil` for never.
    var valuesToPass: Int? {
        switch judgement {
        case .trusted(0): nil
        case .trusted: Self.early
        case .suspected(let suspicion):
            suspicion.limit != nil && (suspicion.nextLimit ?? 512) < suspicion.failing ? Self.step : suspicion.trial
        }
    }

    /// ``valuesToPass`` values have passed without a failure.
    mutating func didPass() {
        switch judgement {
        case .trusted: judgement = .trusted(earlyLosses: 0)
        case .suspected(var suspicion):
            guard suspicion.limit != nil else { return judgement = .trusted(earlyLosses: 0) }
            suspicion.limit = suspicion.nextLimit
            judgement = .suspected(suspicion)
        }
    }

    /// The connection lives, and its queue has taken nothing for the stall timeout.
    ///
    /// - Parameter longest: bytes of the longest value since the limit changed, 0 for none.
    mutating func didStall(longest: Int) { didFail(longest) }

    /// The connection was lost.
    ///
    /// - Parameters:
    ///   - longest: as for ``didStall(longest:)``.
    ///   - passed: values that this connection has carried.
    mutating func didLose(longest: Int, passed: Int) {
        if case .trusted(let losses) = judgement, longest > Self.smallest {
            guard passed < Self.early else { return judgement = .trusted(earlyLosses: 0) }
            guard losses + 1 >= Self.suspiciousLosses else { return judgement = .trusted(earlyLosses: losses + 1) }
        }
        didFail(longest)
    }

    private mutating func didFail(_ longest: Int) {
        guard longest > 0 else { return }
        switch judgement {
        // Short values fail too: their length is not the reason.
        case _ where longest <= Self.smallest: judgement = .trusted(earlyLosses: 0)
        case .trusted:
            judgement = .suspected(Suspicion(limit: Self.smallest, failing: longest, trial: Self.firstTrial))
        case .suspected(var suspicion):
            if longest < suspicion.failing {
                suspicion.failing = longest
                suspicion.trial = Self.firstTrial
            } else {
                suspicion.trial = min(suspicion.trial * 4, Self.longestTrial)
            }
            suspicion.limit = Self.smallest
            judgement = .suspected(suspicion)
        }
    }
}
