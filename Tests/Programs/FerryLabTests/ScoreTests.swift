import Ferry
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

@Suite("Published figures and their score", .tags(.program)) struct ScoreTests {
    @Test(
        "At least forty figures were measured or worked out elsewhere, each with a source, conditions and its own number"
    )
    func table() {
        let all = PublishedFigure.all
        #expect(all.count >= 40)
        #expect(Set(all.map(\.number)).count == all.count)
        for figure in all {
            #expect(!figure.source.isEmpty && figure.published > 0, "\(figure.number)")
            #expect(figure.kind == .part || figure.assumed.isEmpty, "\(figure.number) assumes \(figure.assumed)")
            #expect(figure.kind != .part || !figure.assumed.isEmpty, "\(figure.number) names nothing that is not given")
        }
    }

    @Test("The first figure of each device, and no other of it, is fitted") func held() {
        for device in PublishedFigure.Device.all {
            let own = PublishedFigure.all.filter { figure in
                if case .device(device) = figure.controller { true } else { false }
            }
            #expect(own.count > 1, "\(device.name) judges nothing")
            #expect(own.first?.kind == .fitted, "\(device.name)")
            #expect(own.dropFirst().allSatisfy { $0.kind != .fitted }, "\(device.name)")
        }
    }

    @Test("Arithmetic is met within 2 %, and what was fitted within 3 %") func agreement() throws {
        for figure in PublishedFigure.all where figure.kind == .arithmetic || figure.kind == .fitted {
            let simulated = try figure.simulated()
            let off = abs(simulated / figure.published - 1)
            #expect(off <= (figure.kind == .arithmetic ? 0.02 : 0.03), "\(figure.number): \(simulated)")
        }
    }

    @Test("The page of methods has each figure, and the score as it is") func page() throws {
        let page = try String(
            contentsOf: packageFolder.appending(path: "Documentation/Method.md"), encoding: .utf8)
        let score = try Score()
        for summary in score.summaries { #expect(page.contains(summary.words), "\(summary.words)") }
        for row in score.rows {
            #expect(
                page.contains("| \(row.number) | \(row.source) | \(row.conditions)"), "\(row.number) is not on the page"
            )
        }
        #expect(score.text().contains("not given: data length"))
        #expect(score.rows.filter { $0.kind == .complete }.count >= 20)
        let complete = try #require(score.summary(of: .complete))
        let readme = try String(contentsOf: packageFolder.appending(path: "README.md"), encoding: .utf8)
        #expect(
            readme.contains(
                "of \(complete.count) published measurements it was not fitted to, \(complete.within5Percent) within 5 % and "
                    + "\(complete.within25Percent) within 25 %"))
    }

    @Test("Ranges hold the simulation and what was measured", arguments: ["ios", "android", "bluez", "nordic-s132-2m"])
    func evidence(controller: String) throws {
        let evidence = try Evidence(controller: controller)
        #expect(evidence.lowest > 0 && evidence.lowest <= 1 && evidence.highest >= 1)
        #expect(!(evidence.complete + evidence.part).isEmpty)
        let profile = ControllerSettings(try #require(ControllerProfile.named(controller)))
        let slow = try evidence.bound(profile, interval: 15, isLowest: true).controllerProfile()
        let quick = try evidence.bound(profile, interval: 15, isLowest: false).controllerProfile()
        let figure = try #require(PublishedFigure.all.first { $0.number == "29" })
        let rates = try [slow, try profile.controllerProfile(), quick].map { try figure.simulated($0) }
        #expect(rates == rates.sorted(), "\(rates)")
    }

    @Test("A report of 300 to 400 kbit/s on an iPhone lies within the range for one") func iPhone() throws {
        let evidence = try Evidence(controller: "ios")
        let figure = try #require(PublishedFigure.all.first { $0.number == "29" })
        let profile = ControllerSettings(.ios)
        let slow = try figure.simulated(evidence.bound(profile, interval: 15, isLowest: true).controllerProfile())
        let quick = try figure.simulated(evidence.bound(profile, interval: 15, isLowest: false).controllerProfile())
        #expect(slow < 300 && quick > 400, "\(slow) to \(quick)")
    }

    @Test("A device without a published figure has no evidence, and says so") func none() throws {
        var evidence = try Evidence(controller: "ios-2017")
        (evidence.complete, evidence.part) = ([], [])
        #expect(evidence.words.contains("simulation alone"))
    }
}
