import Ferry

extension LoopbackRadio {
    /// Injected faults: the same from the same seed, at any speed of the machine.
    ///
    /// Values are counted on each connection, from 1, in the order in which they reach the receiving side: notifications,
    /// indications, writes of both types and L2CAP chunks, of both directions together. Ready signals are counted over
    /// the whole radio. A value is lost, doubled, reordered or cut between the receiving stack and its owner, as in the
    /// field: the sender's queue and the confirmation of an indication do not notice. Writes with response and L2CAP chunks,
    /// which no stack is known to damage, only know ``Kind/disconnect`` and ``Kind/changeMTU``.
    public struct Faults: Sendable, Hashable {
        /// The kinds of fault.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The connection times out in place of the value.
            case disconnect
            /// The value does not arrive.
            case lose
            /// The value arrives twice.
            case double
            /// The value changes places with the next one that is queued behind it. When there is none, the fault waits
            /// for the next value that has one.
            case reorder
            /// The value arrives without its end; at least one byte is left.
            case truncate
            /// ATT_MTU changes before the value arrives, to one from ``Faults/mtuRange``. A queued value stays as it
            /// is.
            case changeMTU
            /// A ready signal is sent at once when a value is refused, though there is no space.
            case readyEarly
            /// The ready signal comes ``Faults/readyDelay`` after its time.
            case readyLate
            /// The ready signal does not come.
            case readyNever
            /// Before the exchange, ATT_MTU is reported as ``Faults/wrongMTU``. Set by that alone.
            case wrongMTU

            var isReady: Bool { [.readyEarly, .readyLate, .readyNever].contains(self) }
        }

        /// One fault at a stated place.
        public struct Scripted: Sendable, Hashable {
            /// The kind of fault.
            public var kind: Kind
            /// At which value of a connection, or at which refusal (``Kind/readyEarly``) or ready signal of the radio; from
            /// 1.
            public var position: Int

            /// Describes a fault.
            public init(_ kind: Kind, at position: Int) {
                self.kind = kind
                self.position = position
            }
        }

        /// Decides everything that is drawn.
        public var seed: UInt64

        /// How likely each kind is at a value or ready signal, 0 to 1. The kinds that concern values exclude one another,
        /// and so do those that concern ready signals: neither group may add up to more than 1.
        public var probabilities: [Kind: Double]

        /// Faults at stated places, besides those that are drawn.
        public var script: [Scripted]

        /// What ``Kind/changeMTU`` chooses from, within 23 to 517.
        public var mtuRange: ClosedRange<Int> = 23...517

        /// By how much ``Kind/readyLate`` is late. Default 50 ms.
        public var readyDelay: Duration = .milliseconds(50)

        /// The ATT_MTU that is reported before the exchange in place of 23, within 23 to 517; nil for the truth.
        public var wrongMTU: Int?

        /// What a peer does that cannot take long values, as some devices without data length extension.
        public enum LongValueEffect: Sendable, Hashable {
            /// The connection times out.
            case disconnect
            /// The receiving side takes nothing for this long, and then the value.
            case stall(Duration)
        }

        /// What happens on notifications, indications and writes without response of more than
        /// ``longestValue`` bytes; `nil` for nothing.
        public var longValueEffect: LongValueEffect?

        /// The longest value without ``longValueEffect``, in bytes. Default 20, all that fits ATT_MTU 23.
        public var longestValue = 20

        /// Nothing goes wrong unless it is asked for.
        public init(seed: UInt64 = 0, probabilities: [Kind: Double] = [:], script: [Scripted] = []) {
            self.seed = seed
            self.probabilities = probabilities
            self.script = script
        }

        var isEmpty: Bool {
            probabilities.isEmpty && script.isEmpty && wrongMTU == nil && longValueEffect == nil
        }

        func validate() throws(FerryError) {
            var sums = (values: 0.0, ready: 0.0)
            for (kind, probability) in probabilities {
                try check("faults.probabilities[\(kind)]", probability, 0...1)
                if kind.isReady { sums.ready += probability } else { sums.values += probability }
            }
            try check("the sum of faults.probabilities for values", sums.values, 0...1.000_001)
            try check("the sum of faults.probabilities for ready signals", sums.ready, 0...1.000_001)
            for fault in script { try check("faults.script position", fault.position, 1...Int.max) }
            guard probabilities[.wrongMTU] == nil, !script.contains(where: { $0.kind == .wrongMTU }) else {
                throw FerryError(
                    .invalidConfiguration, "LoopbackRadio: wrongMTU is not drawn or scripted; set faults.wrongMTU")
            }
            try check("faults.mtuRange.lowerBound", mtuRange.lowerBound, 23...517)
            try check("faults.mtuRange.upperBound", mtuRange.upperBound, 23...517)
            try check("faults.readyDelay", readyDelay, .zero ... .seconds(3600))
            try check("faults.longestValue", longestValue, 1...512)
            if case .stall(let duration)? = longValueEffect {
                try check("faults.longValueEffect", duration, .milliseconds(1) ... .seconds(3600))
            }
            if let wrongMTU { try check("faults.wrongMTU", wrongMTU, 23...517) }
        }
    }
}
