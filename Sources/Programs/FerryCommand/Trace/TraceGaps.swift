/// The gaps of a capture, for which the trace may not be all that crossed.
struct TraceGaps {
    var dropped = 0
    var setBack = 0
    var unanswered = 0
    private var cut = 0
    private var torn = 0

    mutating func add(_ gap: AttributeValues.Gap) {
        switch gap {
        case .cut: cut += 1
        case .endless, .headless: torn += 1
        }
    }

    static func text(_ gap: AttributeValues.Gap) -> String {
        switch gap {
        case .cut(let kept, let whole): "a packet of \(whole) bytes was cut to \(kept) by the capture"
        case .endless: "a frame has no end"
        case .headless: "a frame has no beginning"
        }
    }

    /// For people; nil when there are none.
    var sentence: String? {
        let counts: [(Int, String, String)] = [
            (cut, "packet was cut", "packets were cut"), (dropped, "packet was lost", "packets were lost"),
            (torn, "frame is not whole", "frames are not whole"),
            (unanswered, "write has no answer", "writes have no answer"),
            (setBack, "time the clock was set back", "times the clock was set back"),
        ]
        let parts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.0 == 1 ? $0.1 : $0.2)" }
        guard !parts.isEmpty else { return nil }
        return "The capture does not tell all: \(parts.joined(separator: ", ")). Lines with ! say where."
    }
}
