/// Prints figures beside their targets and remembers whether one was missed.
public struct Report {
    /// How many targets were missed.
    public private(set) var missed = 0

    /// Nothing missed yet.
    public init() {}

    /// A figure, and its target if it has one.
    public mutating func line(_ what: String, _ figure: String, target: String? = nil, isMet: Bool = true) {
        var text = pad(what, 46) + pad(figure, 34)
        if let target { text += (isMet ? "meets " : "MISSES ") + target }
        print(text)
        if !isMet { missed += 1 }
    }

    /// What the lines below are about.
    public func heading(_ text: String) { print("\n\(text)") }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}

/// Two decimals.
public func rounded(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    let fraction = hundredths % 100
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
}

/// The middle one.
public func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
