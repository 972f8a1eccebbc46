#if Records
    public import Ferry

    extension RecordHub {
        /// The bounds of a hub.
        public struct Configuration: Sendable, Hashable {
            /// How many links there may be at once, with those that are being set up and those of peers that came and have said
            /// who they are: what the adapter has room for. Beside them at most 64 links wait for a peer's first message, each for
            /// ``RecordStore/Configuration/greeting``. Default 4, at most 1 024.
            public var slots = 4
            /// How many of the slots are kept for peers that come. Default 1; fewer than ``slots``.
            public var slotsForComers = 1
            /// How many links may be in setting up at once, so that peers that are away do not take all slots. Default 2.
            public var attempts = 2
            /// How long a visit may last when another peer needs the slot; longer from visit to visit, up to a quarter of
            /// ``longestBackoff``, where nothing gets through in that time. Default 30 s.
            public var turn = Duration.seconds(30)
            /// Ends a visit after this long with nothing to send or to commit, and no message. Default 2 s.
            public var idle = Duration.seconds(2)
            /// How long to look for a peer. Default 10 s.
            public var connectTimeout = Duration.seconds(10)
            /// After a first visit in vain a peer is tried again after half of this to all of it, by chance; then it doubles.
            /// Default 5 s.
            public var firstBackoff = Duration.seconds(5)
            /// It doubles up to this. Default 15 minutes.
            public var longestBackoff = Duration.seconds(900)
            /// How much waiting a level of priority is worth: with it an urgent peer goes first, and none waits for ever.
            /// Default 10 minutes.
            public var waitingWorthPriority = Duration.seconds(600)
            /// Whether it listens for peers that come. Default true.
            public var listens = true

            /// The defaults.
            public init() {}
        }

        /// What a peer is at.
        public enum Phase: Sendable, Hashable {
            /// Nothing waits for it.
            case idle
            /// It has pending records, and has waited this long for a slot.
            case ready(for: Duration)
            /// `failures` visits in a row did not reach it, or carried nothing; the next begins after this long.
            case backingOff(failures: Int, for: Duration)
            /// It is being connected to.
            case connecting
            /// Records are being exchanged.
            case exchanging
            /// Something waits for it until it comes, for this side cannot connect to it.
            case expected
        }

        /// What a peer is at, and why.
        public struct PeerState: Sendable {
            /// Its name.
            public let peer: String
            /// How many records wait for it.
            public let records: Int
            /// How many bytes they have.
            public let bytes: Int
            /// What it is at.
            public let phase: Phase
            /// Why the last visit of this side to it failed; nil when it did not, or when its turn was over.
            public let failure: FerryError?
        }
    }

    extension RecordHub {
        /// A visit that is over: a link, or an attempt to connect, and its result.
        public struct Visit: Sendable {
            /// The peer's name; nil for one that came, and left before it said who it is.
            public let peer: String?
            /// Who was connected to, or who the link said had come.
            public let identity: PeerIdentity
            /// Whether the peer came; otherwise this side connected to it.
            public let hasCome: Bool
            /// How long it took, with the time to connect.
            public let duration: Duration
            /// What went through, or why the visit failed. A turn that was over is no failure.
            public let result: Result<RecordStore.Summary, FerryError>
        }
    }

    extension RecordHub.Configuration {
        func check() throws(FerryError) {
            func require(_ holds: Bool, _ name: String, _ value: some Any, _ range: String) throws(FerryError) {
                guard !holds else { return }
                throw FerryError(
                    .invalidConfiguration, "RecordHub.Configuration.\(name) is \(value); it must be \(range).")
            }
            try require((1...1024).contains(slots), "slots", slots, "1 to 1024")
            try require((0..<slots).contains(slotsForComers), "slotsForComers", slotsForComers, "fewer than slots")
            try require(attempts >= 1, "attempts", attempts, "at least 1")
            let day = Duration.seconds(86_400)
            let durations = [
                ("turn", turn), ("idle", idle), ("connectTimeout", connectTimeout), ("firstBackoff", firstBackoff),
                ("longestBackoff", longestBackoff),
            ]
            for (name, value) in durations {
                try require(value > .zero && value <= day, name, value, "more than zero and at most a day")
            }
            try require(
                waitingWorthPriority >= .zero && waitingWorthPriority <= day, "waitingWorthPriority",
                waitingWorthPriority, "zero to a day")
        }
    }
#endif
