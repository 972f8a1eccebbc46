import Ferry
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

/// Every sentence of `ferry advise` that says what something is known by leads to rows of the published figures.
@Suite("What ferry advise claims to know", .tags(.program)) struct AdviceEvidenceTests {
    /// Every controller that can be named, and every kind of peer.
    static let profileNames = ControllerProfile.all.map(\.name)

    private static func row(_ number: String) throws -> PublishedFigure {
        try #require(PublishedFigure.all.first { $0.number == number }, "there is no figure \(number)")
    }

    @Test(
        "Ranges are those of the rows that are named, with the kind that the rows have", arguments: profileNames,
        [false, true])
    func ranges(_ name: String, isCoded: Bool) throws {
        let profile = ControllerSettings(try #require(ControllerProfile.named(name)))
        let words = try Evidence(profile, isCoded: isCoded).words
        guard !words.contains("The ranges are the simulation alone") else { return }
        let range = try #require(words.firstMatch(of: #/(\d+) to (\d+) % of the simulated throughput/#), "\(words)")
        let stated = try (#require(Double(range.1)), #require(Double(range.2)))
        var ratios: [Double] = [1]
        for kind in [
            ("published with all conditions: ", PublishedFigure.Kind.complete), ("published in part: ", .part),
        ] {
            guard let start = words.range(of: kind.0) else { continue }
            let list = words[start.upperBound...].prefix { $0 != ";" && $0 != ")" }
            for number in list.split(separator: ", ").map(String.init) {
                let row = try Self.row(number)
                #expect(row.kind == kind.1, "\(number) in \(words)")
                // A device that is not known is judged by what all chips lose against what fits the air.
                let isOwn: Bool
                switch row.controller {
                case .device(let device): isOwn = words.contains(device.name)
                case .stated(let stated): isOwn = stated.name == name && name == "android"
                }
                ratios.append(row.published / (try row.simulated(isOwn ? nil : .ideal)))
            }
        }
        #expect(ratios.count > 1, "no figure is named: \(words)")
        #expect(abs((ratios.min() ?? 0) * 100 - stated.0) <= 1, "\(ratios) against \(words)")
        #expect(abs((ratios.max() ?? 0) * 100 - stated.1) <= 1, "\(ratios) against \(words)")
    }

    /// Conditions under which a published figure is beside the advice.
    static let checked: [(controller: String, mtu: Int, interval: Double, phy: String, length: Int, write: Bool)] = [
        ("ideal", 23, 4000, "1M", 27, false), ("ios-2017", 185, 30, "1M", 27, true),
        ("nordic-s132-1m", 247, 50, "1M", 251, false), ("nordic-s132-2m", 247, 50, "2M", 251, false),
        ("nrf-connect", 498, 400, "2M", 251, false),
    ]

    @Test("A figure that advice is checked against is a row, as it stands there", arguments: checked)
    func checks(
        _ conditions: (controller: String, mtu: Int, interval: Double, phy: String, length: Int, write: Bool)
    ) throws {
        let profile = ControllerSettings(try #require(ControllerProfile.named(conditions.controller)))
        let base = settings {
            ($0.attMTU, $0.interval, $0.phy) = (conditions.mtu, conditions.interval, conditions.phy)
            ($0.dataLength, $0.profile, $0.direction) = (
                conditions.length, profile, conditions.write ? .write : .notify
            )
        }
        let (figure, used) = try #require(PublishedFigure.matching(base))
        #expect(PublishedFigure.all.contains { $0.number == figure.number && $0.published == figure.published })
        #expect(used.name == conditions.controller)
        var peer = try Peer(named: "custom", controller: profile)
        peer.attMTU = conditions.mtu
        try peer.choose(from: [conditions.interval])
        var adviser = Adviser(sizes: try MessageSizes(distribution: "100"), peer: peer, base: base, deadline: nil)
        adviser.seconds = 1
        let text = try adviser.advise().text().split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains("\(figure.source) (\(figure.conditions)"), "\(text)")
        #expect(text.contains("published \(number(figure.published, 1)) kbit/s"), "\(text)")
        // What was fitted to the figure does not pass for a check.
        #expect(text.contains("Their agreement is no evidence.") == used.source.contains("fitted"), "\(text)")
    }

    /// Packets in each event that a row's throughput implies.
    private static func packets(_ number: String) throws -> Double {
        let row = try row(number)
        let overhead =
            switch row.sent {
            case .channel: 6
            default: 7
            }
        let packets = (row.size + overhead + row.dataLength - 1) / row.dataLength
        return row.published * row.interval / Double(row.size * 8) * Double(packets)
    }

    @Test("What profiles say of packets per event is what the rows imply") func profiles() throws {
        #expect(ControllerProfile.ios.source.contains("figures 29 to 32 imply 3 to 4"))
        for number in ["29", "30", "31", "32"] {
            let packets = try Self.packets(number)
            #expect((3...4).contains(packets.rounded()), "\(number): \(packets)")
        }
        #expect(ControllerProfile.android.source.contains("figures 33 and 34 imply 7 and 8"))
        let implied = try ["33", "34"].map { try Self.packets($0).rounded() }.sorted()
        #expect(implied == [7, 8], "\(implied)")
    }

    @Test("Each number of a figure in a profile, a remark or a reason is a row's") func numbers() throws {
        let texts =
            ControllerProfile.all.map(\.source)
            + (try Peer.names.map { try Peer(named: $0, controller: ControllerSettings(.ideal)).remark })
        for text in texts {
            for match in text.matches(of: #/[Ff]igures? (\d+[a-d]?)(?: (?:and|to) (\d+[a-d]?))?/#) {
                for number in [match.1, match.2 ?? match.1] { _ = try Self.row(String(number)) }
            }
        }
    }
}
