/// What a sweep shows, in sentences: what one would say when showing the charts.
struct ReportFindings {
    let results: [BenchResult]
    let reference: BenchSettings

    /// The sentences, the most important one first.
    func sentences() -> [String] { [best(), spill(), phys(), intervals()].compactMap { $0 } }

    private func place(_ settings: BenchSettings) -> String {
        let others = ResultTable.names(
            of: settings, among: results.map(\.settings), without: ["phy", "interval ms", "mtu"])
        let more = others.isEmpty ? "" : " and \(others)"
        return "LE \(settings.phy) at \(short(settings.interval)) ms with ATT_MTU \(settings.attMTU)\(more)"
    }

    private func goodput(_ result: BenchResult) -> String { "\(number(result.goodput, 0)) kbit/s" }

    private func best() -> String? {
        guard let best = results.max(by: { $0.goodput < $1.goodput }), results.count > 1 else { return nil }
        let share = "\(number(best.shareOfLimit * 100, 0)) %"
        guard best.settings.compression == .none else {
            return
                "\(place(best.settings)) carries most: \(goodput(best)) of messages. Compressed they take \(share) of what "
                + "that link could carry."
        }
        return "\(place(best.settings)) carries most: \(goodput(best)), \(share) of what that link could carry."
    }

    /// A larger ATT_MTU that carries less, because its values need one more packet for a few bytes.
    private func spill() -> String? {
        let line = results.filter { result in
            var expected = reference
            expected.attMTU = result.settings.attMTU
            return expected == result.settings
        }
        guard let best = line.max(by: { $0.goodput < $1.goodput }),
            let larger = line.filter({ $0.settings.attMTU > best.settings.attMTU }).max(by: {
                $0.settings.attMTU < $1.settings.attMTU
            }), larger.goodput < 0.97 * best.goodput
        else { return nil }
        let settings = larger.settings
        let value = min(settings.attMTU - 3, 512)
        let (whole, rest) = (value + 7).quotientAndRemainder(dividingBy: settings.dataLength)
        let less = number((1 - larger.goodput / best.goodput) * 100, 0)
        var text =
            "A larger ATT_MTU is not always better: \(settings.attMTU) carries \(less) % less than "
            + "\(best.settings.attMTU) at \(short(settings.interval)) ms on LE \(settings.phy)."
        if rest > 0, whole > 0 {
            text +=
                " With its headers a value of \(value) bytes fills \(whole) link-layer packet\(whole == 1 ? "" : "s") of "
                + "\(settings.dataLength) bytes and needs one more for the last \(rest)."
        }
        return text
    }

    private func phys() -> String? {
        func best(_ phy: String) -> BenchResult? {
            results.filter { $0.settings.phy == phy && $0.settings.attMTU == reference.attMTU }
                .max { $0.goodput < $1.goodput }
        }
        guard let slow = best("1M"), let fast = best("2M"), slow.goodput > 0 else { return nil }
        return "LE 2M carries \(number(fast.goodput / slow.goodput, 2)) times what LE 1M does with ATT_MTU "
            + "\(reference.attMTU), not twice as much: the pauses between packets stay as long."
    }

    private func intervals() -> String? {
        let line = results.filter { result in
            var expected = reference
            expected.interval = result.settings.interval
            return expected == result.settings
        }
        guard line.count > 1, let best = line.max(by: { $0.goodput < $1.goodput }),
            let worst = line.min(by: { $0.goodput < $1.goodput }), best.goodput > 0
        else { return nil }
        let range = "\(short(worst.settings.interval)) ms and \(short(best.settings.interval)) ms"
        let difference = (1 - worst.goodput / best.goodput) * 100
        if difference < 3 {
            return "Between the intervals goodput with ATT_MTU \(reference.attMTU) on LE \(reference.phy) differs by "
                + "\(number(difference, 1)) % only, while messages that come one by one wait half an interval on average: "
                + "choose it for latency and battery."
        }
        return
            "The interval matters with ATT_MTU \(reference.attMTU) on LE \(reference.phy): \(number(difference, 0)) % between "
            + "\(range)."
    }
}
