/// One transfer: how full the queue was, when the link refused, when it was ready again, when chunks arrived.
struct TimelineChart {
    let timeline: TransferTimeline

    private static let width = 1_140.0
    private static let left = 104.0
    private static let right = width - 16
    /// Where the queue's depth is drawn, and below it a row each for ready signals, refusals and arrivals.
    private static let depthArea = (top: 20.0, bottom: 190.0)
    private static let rows = (ready: 222.0, refused: 252.0, delivered: 282.0)
    private static let height = 336.0

    func html() -> String {
        let settings = timeline.settings
        let waits = timeline.steps.count { $0.kind == .ready }
        let course =
            switch waits {
            case 0: "the link takes all of it at once."
            case 1: "the link fills up, says that it is ready again once, and the channel goes on."
            default: "the link fills up, says that it is ready again \(waits) times, and the channel goes on each time."
            }
        let caption =
            "\(settings.messageSize) bytes at ATT_MTU \(settings.attMTU), \(short(settings.interval)) ms, "
            + "\(settings.phy), a queue of \(settings.queueDepth): \(course)"
        return """
            <figure class="card wide"><figcaption><h3>One transfer, step by step</h3><p>\(escaped(caption))</p></figcaption>
            <div class="scroll" role="region" tabindex="0" aria-label="One transfer, step by step">\(svg())</div></figure>

            """
    }

    private func svg() -> String {
        guard let last = timeline.steps.last?.time, last > 0 else { return "<p>Nothing to show.</p>" }
        let x = Axis(scale: .linear, range: 0...last, ticks: [], start: Self.left, end: Self.right)
        let ticks = Axis.fromZero(to: last, start: 0, end: 1).ticks.filter { $0 <= last }
        let most = Double(timeline.steps.map(\.depth).max() ?? 1)
        let y = Axis(
            scale: .linear, range: 0...max(1, most), ticks: [0, most], start: Self.depthArea.bottom,
            end: Self.depthArea.top)
        var body = ""
        for tick in ticks {
            let place = text(x.place(tick))
            body +=
                "<line class=\"grid\" x1=\"\(place)\" x2=\"\(place)\" y1=\"20\" y2=\"\(text(Self.rows.delivered + 12))\"/>"
            body +=
                "<text class=\"tick mid\" x=\"\(place)\" y=\"\(text(Self.rows.delivered + 30))\">\(number(tick, 0))</text>"
        }
        body +=
            "<text class=\"axis mid\" x=\"\(text((Self.left + Self.right) / 2))\" y=\"\(text(Self.height - 6))\">"
            + "ms since the message was sent</text>"
        body += rowLabels(most, y)
        body += depthPath(x, y)
        body += marks(x)
        return "<svg viewBox=\"0 0 \(text(Self.width)) \(text(Self.height))\" role=\"img\" "
            + "aria-label=\"Queue depth, ready signals and arrivals over time\">" + body + "</svg>"
    }

    private func rowLabels(_ most: Double, _ y: Axis) -> String {
        var result = ""
        for value in [0, most] {
            result +=
                "<text class=\"tick end\" x=\"96\" y=\"\(text(y.place(value)))\" dy=\".32em\">\(number(value, 0))</text>"
        }
        let middle = (Self.depthArea.top + Self.depthArea.bottom) / 2
        let labels = [
            ("in queue", middle), ("ready", Self.rows.ready), ("refused", Self.rows.refused),
            ("arrived", Self.rows.delivered),
        ]
        for (name, place) in labels {
            result += "<text class=\"axis end\" x=\"96\" y=\"\(text(place))\" dy=\".32em\">\(name)</text>"
        }
        return result
    }

    /// The depth as an area of steps.
    private func depthPath(_ x: Axis, _ y: Axis) -> String {
        var path = "M\(text(Self.left)),\(text(Self.depthArea.bottom))"
        var depth = 0
        for step in timeline.steps where step.depth != depth {
            path += " H\(text(x.place(step.time))) V\(text(y.place(Double(step.depth))))"
            depth = step.depth
        }
        path += " H\(text(Self.right)) V\(text(Self.depthArea.bottom)) Z"
        return "<path class=\"area\" d=\"\(path)\"/>"
    }

    private func marks(_ x: Axis) -> String {
        var result = ""
        for step in timeline.steps {
            let place = x.place(step.time)
            let hint = "<title>\(number(step.time, 2)) ms: \(step.kind.rawValue), \(step.depth) in the queue</title>"
            switch step.kind {
            case .accepted: break
            case .ready:
                let (low, high) = (text(Self.rows.ready + 7), text(Self.rows.ready - 7))
                result +=
                    "<path class=\"f2\" d=\"M\(text(place)),\(high) L\(text(place + 6)),\(low) L\(text(place - 6)),\(low) Z\">\(hint)</path>"
            case .refused:
                let (low, high) = (text(Self.rows.refused + 7), text(Self.rows.refused - 7))
                result +=
                    "<line class=\"line s1\" x1=\"\(text(place))\" x2=\"\(text(place))\" y1=\"\(high)\" y2=\"\(low)\">\(hint)</line>"
            case .delivered:
                result +=
                    "<circle class=\"f0\" cx=\"\(text(place))\" cy=\"\(text(Self.rows.delivered))\" r=\"4\">\(hint)</circle>"
            }
        }
        return result
    }
}
