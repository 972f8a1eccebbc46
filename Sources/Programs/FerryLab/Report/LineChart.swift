/// Lines with marked points, as inline SVG that takes its colours from the page.
struct LineChart {
    struct Series {
        var name: String
        var points: [(x: Double, y: Double)]
        /// Which of the page's colours.
        var colour: Int
        /// A line for comparison, without points.
        var isDashed = false
    }

    var title: String
    var caption: String
    var xLabel: String
    var yLabel: String
    var xScale = Axis.Scale.linear
    var xTicks: [Double]?
    var xTickText: (Double) -> String = { number($0, $0 == $0.rounded() ? 0 : 1) }
    var yMaximum: Double?
    var series: [Series]

    private static let width = 560.0
    private static let height = 330.0

    func html() -> String {
        let legend = series.map { "<span>\(Self.mark($0))\(escaped($0.name))</span>" }.joined()
        return """
            <figure class="card"><figcaption><h3>\(escaped(title))</h3><p>\(escaped(caption))</p></figcaption>
            \(svg())
            \(series.count > 1 ? "<div class=\"legend\">\(legend)</div>" : "")</figure>

            """
    }

    private func svg() -> String {
        let xs = series.flatMap { $0.points.map(\.x) }
        let ys = series.flatMap { $0.points.map(\.y) }
        guard let low = xs.min(), let high = xs.max(), let top = ys.max() else { return "<p>Nothing to show.</p>" }
        let x = Axis(
            scale: xScale, range: low...max(high, low), ticks: xTicks ?? Array(Set(xs)).sorted(), start: 64,
            end: Self.width - 20)
        let y = Axis.fromZero(to: yMaximum ?? top, start: Self.height - 58, end: 30)
        var body = ""
        for tick in y.ticks {
            let place = text(y.place(tick))
            body += "<line class=\"grid\" x1=\"64\" x2=\"\(text(Self.width - 20))\" y1=\"\(place)\" y2=\"\(place)\"/>"
            body +=
                "<text class=\"tick end\" x=\"56\" y=\"\(place)\" dy=\".32em\">\(label(tick, y.range.upperBound))</text>"
        }
        for tick in Self.thinned(x.ticks, on: x) {
            let place = text(x.place(tick))
            body +=
                "<text class=\"tick mid\" x=\"\(place)\" y=\"\(text(Self.height - 33))\">\(escaped(xTickText(tick)))</text>"
        }
        body +=
            "<text class=\"axis mid\" x=\"\(text((64 + Self.width - 20) / 2))\" y=\"\(text(Self.height - 8))\">"
            + "\(escaped(xLabel))</text>"
        body += "<text class=\"axis\" x=\"4\" y=\"10\">\(escaped(yLabel))</text>"
        for line in series { body += drawing(of: line, x, y) }
        return
            "<svg viewBox=\"0 0 \(text(Self.width)) \(text(Self.height))\" role=\"img\" aria-label=\"\(escaped(title))\">"
            + body + "</svg>"
    }

    private func drawing(of line: Series, _ x: Axis, _ y: Axis) -> String {
        let places = line.points.map { "\(text(x.place($0.x))),\(text(y.place($0.y)))" }
        let dashes = line.isDashed ? " dashed" : ""
        var result =
            "<polyline class=\"line s\(line.colour)\(dashes)\" points=\"\(places.joined(separator: " "))\"/>"
        guard !line.isDashed else { return result }
        for point in line.points {
            let hint = "\(line.name): \(xTickText(point.x)), \(number(point.y, 1))"
            result += Self.shape(line.colour, x.place(point.x), y.place(point.y), hint)
        }
        return result
    }

    /// A line and its points as in the chart, for the legend.
    private static func mark(_ line: Series) -> String {
        let dashes = line.isDashed ? " dashed" : ""
        return "<svg class=\"mark\" viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
            + "<path class=\"line s\(line.colour)\(dashes)\" d=\"M0 6H34\"/>"
            + (line.isDashed ? "" : shape(line.colour, 17, 6, line.name)) + "</svg>"
    }

    /// A point's shape tells its line as well as the colour does.
    private static func shape(_ colour: Int, _ x: Double, _ y: Double, _ hint: String) -> String {
        let title = "<title>\(escaped(hint))</title>"
        func polygon(_ corners: [(Double, Double)]) -> String {
            let points = corners.map { "\(text(x + $0.0)),\(text(y + $0.1))" }.joined(separator: " ")
            return "<polygon class=\"f\(colour)\" points=\"\(points)\">\(title)</polygon>"
        }
        switch colour {
        case 1: return polygon([(-4, -4), (4, -4), (4, 4), (-4, 4)])
        case 2: return polygon([(0, -5), (5, 4), (-5, 4)])
        case 3: return polygon([(0, -6), (6, 0), (0, 6), (-6, 0)])
        case 4: return polygon([(0, 5), (5, -4), (-5, -4)])
        case 5: return polygon([(-5, -2), (5, -2), (5, 2), (-5, 2)])
        default:
            return "<circle class=\"f\(colour)\" cx=\"\(text(x))\" cy=\"\(text(y))\" r=\"4\">\(title)</circle>"
        }
    }

    /// Leaves out ticks whose texts would touch.
    private static func thinned(_ ticks: [Double], on axis: Axis) -> [Double] {
        var kept: [Double] = []
        for tick in ticks.reversed() where kept.last.map({ axis.place($0) - axis.place(tick) >= 34 }) ?? true {
            kept.append(tick)
        }
        return kept.reversed()
    }

    private func label(_ value: Double, _ top: Double) -> String {
        number(value, top >= 20 ? 0 : top >= 2 ? 1 : 2)
    }
}

/// A coordinate, to a tenth.
func text(_ value: Double) -> String { number(value, 1) }

/// Text within HTML or an attribute.
func escaped(_ text: String) -> String {
    var result = ""
    for character in unbroken(text) {
        switch character {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        default: result.append(character)
        }
    }
    return result
}

/// A number and what it counts stay on one line: no-break spaces (U+00A0) join them.
func unbroken(_ text: String) -> String {
    let units: Set = ["ms", "s", "%", "kbit/s", "bytes", "B"]
    let names: Set = ["MTU", "ATT_MTU", "LE"]
    var result = ""
    var last = Substring()
    for (index, word) in text.split(separator: " ", omittingEmptySubsequences: false).enumerated() {
        let counts = last.last?.isNumber == true && units.contains(String(word.prefix { !".,;:)".contains($0) }))
        let isNamed = names.contains(String(last)) && word.first?.isNumber == true
        if index > 0 { result += counts || isNamed ? "\u{A0}" : " " }
        result += word
        last = word
    }
    return result
}
