public import Ferry

/// The times, bounds and weights by which gateways own peers. All gateways of a fleet have the same.
///
/// What makes it safe is one line: a holder stops at the latest ``validity`` after it *asked* for the lease or its renewal, by
/// its own clock, and the bucket keeps the entry for ``timeToLive`` after it was stored, by its own. The entry was stored after it
/// was asked for, so that `(timeToLive - serverSkew) * (1 - 2 * clockDrift)` on the holder's clock is over before
/// `timeToLive - serverSkew` on the servers'.
public struct LeasePolicy: Sendable, Hashable {
    // MARK: Safety

    /// How long the bucket keeps an entry after it was stored: the bucket's setting, and the same here.
    public var timeToLive = Duration.seconds(30)
    /// How much faster or slower than true time a gateway's steady clock, or a server's clock, may run: parts per million. Quartz
    /// stays within 100; clocks that are being slewed within 500 (`adjtimex(2)`). At most 200 000.
    public var clockDrift = 1000
    /// How far the clocks of the bucket's servers may be apart, or be set while an entry is kept: each server stamps and
    /// expires by its own wall clock.
    public var serverSkew = Duration.seconds(1)
    /// How long a gateway takes to end a connection, and attempts at one, from the moment when it has been told.
    public var stopping = Duration.seconds(2)

    // MARK: Requests

    /// The time after which a request without an answer counts as not answered.
    public var requestTimeout = Duration.seconds(2)
    /// How many requests that are not renewals a gateway has on their way at once.
    public var maximumAttempts = 16
    /// How long after a look at a lease that another gateway has, a candidate looks again; up to half as much more, by gateway
    /// and peer.
    public var poll = Duration.seconds(20)
    /// Over how long candidates for the same peer are spread: those with a better score first, and within that by gateway and
    /// peer.
    public var spread = Duration.seconds(3)

    /// Over how long a gateway that has just started spreads its first attempts, from the first peer that it hears: so that a fleet
    /// whose power returns does not ask for all of its peers at once. Zero, where peers are to be had at once.
    public var startup = Duration.zero

    // MARK: Scores and hand-overs

    /// Decibels that a gateway with all of its places free has before one that has none.
    ///
    /// Less than ``stickiness``, or gateways that hear a peer equally well would hand it to and fro for the sake of their places.
    public var weightOfFreePlaces = 6
    /// By how many decibels another gateway must be better for a peer to be handed over.
    public var stickiness = 10
    /// How long another gateway must have been better, told by three sightings at least.
    public var patience = Duration.seconds(60)
    /// How long a gateway has a peer before it hands it over for the sake of the signal.
    public var minimumTenure = Duration.seconds(300)
    /// Hand-overs for the sake of the signal that a gateway begins in a minute.
    public var handOversPerMinute = 6
    /// For how long a lease that was given up is left to its successor.
    public var reservation = Duration.seconds(5)

    // MARK: Bounds

    /// Peers of which a gateway knows at once, its own and those that it is a candidate for; more are not heard.
    public var maximumPeers = 4096
    /// The silence of a peer after which its candidates forget it, and its owner gives it up.
    public var silence = Duration.seconds(120)

    /// The values above.
    public init() {}

    /// How long a lease is good after it, or its renewal, was asked for, by the holder's clock: see ``LeasePolicy``.
    public var validity: Duration { .nanoseconds(validityNanoseconds) }

    /// How long after a renewal the next is asked for: a third of what there is, so that two may be lost.
    public var renewal: Duration { .nanoseconds((validityNanoseconds - stopping.wholeNanoseconds) / 3) }

    private var validityNanoseconds: Int64 {
        let kept = (timeToLive - serverSkew).wholeNanoseconds
        return kept - kept / 1_000_000 * Int64(2 * clockDrift) - kept % 1_000_000 * Int64(2 * clockDrift) / 1_000_000
            - 1
    }

    /// Checks that the values fit one another.
    ///
    /// - Throws: ``/Ferry/FerryError`` with code `fleet.policy`, which names the value, and what it can be.
    public func validate() throws(FerryError) {
        func refuse(_ what: String) -> FerryError { FerryError(.fleetPolicy, what) }
        guard (0...200_000).contains(clockDrift) else {
            throw refuse("clockDrift is \(clockDrift), and can be 0 to 200000 parts per million.")
        }
        let day = Duration.seconds(86_400)
        let durations = [
            ("timeToLive", timeToLive), ("serverSkew", serverSkew), ("stopping", stopping), ("poll", poll),
            ("requestTimeout", requestTimeout), ("spread", spread), ("patience", patience), ("silence", silence),
            ("minimumTenure", minimumTenure), ("reservation", reservation), ("startup", startup),
        ]
        for (name, value) in durations where value < .zero || value > day {
            throw refuse("\(name) is \(value), and can be zero to a day.")
        }
        guard validity - stopping >= requestTimeout * 2 else {
            throw refuse(
                """
                timeToLive is \(timeToLive), of which a lease is good for \(validity): less than stopping (\(stopping)) and two \
                requests of \(requestTimeout). Take a longer timeToLive, or a smaller serverSkew, clockDrift or requestTimeout.
                """)
        }
        for (name, value) in [("requestTimeout", requestTimeout), ("poll", poll), ("silence", silence)]
        where value == .zero {
            throw refuse("\(name) is zero, and must be more.")
        }
        for (name, value) in [
            ("maximumAttempts", maximumAttempts), ("maximumPeers", maximumPeers),
            ("handOversPerMinute", handOversPerMinute),
        ] where !(1...1_000_000).contains(value) {
            throw refuse("\(name) is \(value), and can be 1 to 1000000.")
        }
        for (name, value) in [("weightOfFreePlaces", weightOfFreePlaces), ("stickiness", stickiness)]
        where !(0...100).contains(value) {
            throw refuse("\(name) is \(value), and can be 0 to 100 decibels.")
        }
        guard weightOfFreePlaces < stickiness else {
            throw refuse(
                "weightOfFreePlaces is \(weightOfFreePlaces), and must be less than stickiness, \(stickiness).")
        }
    }
}

extension FerryError.Code {
    /// A ``LeasePolicy``, or the name or size of a gateway, that cannot be.
    public static let fleetPolicy = FerryError.Code("fleet.policy")
    /// A ``Fence`` knows as many peers as it may.
    public static let fenceFull = FerryError.Code("fleet.fenceFull")
}

/// The policy's times in nanoseconds, worked out once.
struct LeaseTimes: Sendable, Hashable {
    let timeToLive, validity, renewal, stopping, requestTimeout, poll, spread, patience, minimumTenure: Int64
    let reservation, silence, startup: Int64

    init(_ policy: LeasePolicy) {
        timeToLive = policy.timeToLive.wholeNanoseconds
        validity = policy.validity.wholeNanoseconds
        renewal = policy.renewal.wholeNanoseconds
        stopping = policy.stopping.wholeNanoseconds
        requestTimeout = policy.requestTimeout.wholeNanoseconds
        poll = policy.poll.wholeNanoseconds
        spread = policy.spread.wholeNanoseconds
        patience = policy.patience.wholeNanoseconds
        minimumTenure = policy.minimumTenure.wholeNanoseconds
        reservation = policy.reservation.wholeNanoseconds
        silence = policy.silence.wholeNanoseconds
        startup = policy.startup.wholeNanoseconds
    }
}

extension Timestamp {
    /// So many nanoseconds later, held at the ends of what there is.
    func later(_ nanoseconds: Int64) -> Timestamp {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return overflow
            ? (nanoseconds < 0 ? Timestamp(nanoseconds: .min) : .distantFuture) : Timestamp(nanoseconds: sum)
    }
}
