import Ferry

/// Chooses the next fault from a seed: plain arithmetic, no clock and no system randomness.
struct FaultInjector {
    typealias Kind = LoopbackRadio.Faults.Kind

    let faults: LoopbackRadio.Faults
    private var random: SeededGenerator
    private var values = 0
    private var signals = 0
    private var refusals = 0
    /// A reordering waits for a value with another one behind it.
    var owesReorder = false

    /// Nil when nothing is to go wrong, so that a radio without faults pays nothing for them. `stream` keeps the draws of
    /// connections apart.
    init?(_ faults: LoopbackRadio.Faults, stream: UInt64) {
        guard !faults.isEmpty else { return nil }
        self.faults = faults
        random = SeededGenerator(seed: mixed(faults.seed ^ mixed(stream)))
    }

    /// The next 64 random bits.
    mutating func next() -> UInt64 { random.next() }

    /// A number below `bound`, which is at least 1.
    mutating func next(below bound: Int) -> Int { Int(next() % UInt64(bound)) }

    /// What a value of this many bytes does to its receiver.
    func effect(of byteCount: Int) -> LoopbackRadio.Faults.LongValueEffect? {
        byteCount > faults.longestValue ? faults.longValueEffect : nil
    }

    /// Returns the fault that strikes the next value; nil for none.
    mutating func nextForValue() -> Kind? {
        values += 1
        return scripted(at: values) { !$0.isReady } ?? drawn { !$0.isReady }
    }

    /// Whether a refusal is followed by a ready signal that is too early.
    mutating func isReadyEarly() -> Bool {
        refusals += 1
        return (scripted(at: refusals) { $0 == .readyEarly } ?? drawn { $0 == .readyEarly }) != nil
    }

    /// Returns the fault that strikes the next ready signal; nil for none.
    mutating func nextForReady() -> Kind? {
        signals += 1
        let concerns: (Kind) -> Bool = { $0 == .readyLate || $0 == .readyNever }
        return scripted(at: signals, where: concerns) ?? drawn(where: concerns)
    }

    private func scripted(at position: Int, where concerns: (Kind) -> Bool) -> Kind? {
        faults.script.first { $0.position == position && concerns($0.kind) }?.kind
    }

    private mutating func drawn(where concerns: (Kind) -> Bool) -> Kind? {
        guard !faults.probabilities.isEmpty else { return nil }
        var left = Double(next() >> 11) * 0x1p-53
        for kind in Kind.allCases where concerns(kind) {
            guard let probability = faults.probabilities[kind] else { continue }
            if left < probability { return kind }
            left -= probability
        }
        return nil
    }
}
