/// Prints figures beside their targets and remembers whether one was missed.
struct Report {
    private(set) var missed = 0

    mutating func line(_ what: String, _ figure: String, target: String? = nil, isMet: Bool = true) {
        var text = pad(what, 46) + pad(figure, 34)
        if let target { text += (isMet ? "meets " : "MISSES ") + target }
        print(text)
        if !isMet { missed += 1 }
    }

    func heading(_ text: String) { print("\n\(text)") }

    private func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}

/// Two decimals.
func rounded(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    let fraction = hundredths % 100
    return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
