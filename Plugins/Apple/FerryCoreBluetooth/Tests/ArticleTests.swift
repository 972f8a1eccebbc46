import CoreBluetooth
import CoreBluetoothRig
import Ferry
import FerryBluetooth
import FerryCoreBluetooth
import FerryLoopback
import TestSupport
import Testing

/// The article's code is compiled and runs; the adapter uses nothing that Apple's framework does not have.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(10))) struct ArticleTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
    }

    @Test func theArticleShowsTheCodeThatIsCompiled() throws {
        let code = try Self.text("RecordApp.swift")
        let blocks = try Self.text("../FerryCoreBluetooth.docc/InAnApp.md").components(separatedBy: "```swift\n")
            .dropFirst()
            .compactMap { $0.components(separatedBy: "\n```").first }
        #expect(blocks.count == 4)
        for block in blocks { #expect(code.contains(block), "\(block.prefix(60))") }
    }

    /// The phone over Apple's interface, the Raspberry Pi on an adapter as any.
    @Test func readingsCrossFromAPhoneToARaspberryPi() async throws {
        let radio = LoopbackRadio()
        let phone = overCoreBluetooth(radio.makeAdapter(name: "phone"), [])
        let readings = (1...30).map { Reading(number: $0, celsius: Double($0) / 2) }
        let kept = Journal()
        let collecting = Task {
            try await collectReadings(on: radio.makeAdapter(name: "pi")) { kept.add("\($1.number): \($1.celsius)") }
        }
        defer { collecting.cancel() }
        try await sendReadings(readings, over: phone)
        try await kept.wait(for: "30: ")
        #expect(kept.all == readings.map { "\($0.number): \($0.celsius)" })
    }

    /// Additions of this project's module would not compile on Apple's systems.
    @Test func onlyApplesInterfaceIsUsed() throws {
        let files = try FileManager.default.contentsOfDirectory(
            at: Self.folder.deletingLastPathComponent(), includingPropertiesForKeys: nil
        ).filter { $0.pathExtension == "swift" }
        #expect(files.count >= 7)
        let allowed: Set = ["CoreBluetooth", "Ferry", "FerryBluetooth"]
        for file in files {
            let code = try String(contentsOf: file, encoding: .utf8)
            for addition in ["CBAdapters", "CBQuirks", ", adapter: ", "quirks:", ".other(", "FerryLoopback"] {
                #expect(!code.contains(addition), "\(file.lastPathComponent) uses \(addition)")
            }
            for line in code.split(separator: "\n") where line.hasPrefix("import ") || line.hasPrefix("public import ")
            {
                #expect(
                    allowed.contains(String(line.split(separator: " ").last ?? "")),
                    "\(file.lastPathComponent): \(line)")
            }
        }
    }

    /// Readings cross; the app ends and begins again, finds its logger by what it has kept, and has each reading once.
    @Test func readingsCrossAndTheAppGoesOn() async throws {
        try await readingsCross([], rounds: [20, 40, 60])
    }

    @Test func readingsCrossInTheBackground() async throws {
        try await readingsCross(
            [.silentInBackground, .namelessAdvertising, .quietScans, .losesReadyCalls], rounds: [60])
    }

    private func readingsCross(_ quirks: CBQuirks, rounds wanted: [Int]) async throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        let radio = try LoopbackRadio(configuration: configuration)
        let phone = radio.makeAdapter(name: "phone")
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("notebook \(UUID()).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let logger = overCoreBluetooth(radio.makeAdapter(name: "logger"), quirks)
        let readings = (1...60).map { Reading(number: $0, celsius: Double($0) / 2) }
        let offering = Task { try await offerReadings(readings, on: logger) }
        var rounds = 0
        for wanted in wanted {
            let notebook = Notebook(file: file)
            let app = RecordApp(bluetooth: overCoreBluetooth(phone, quirks), notebook: notebook)
            let running = Task { try await app.run() }
            try await until("\(wanted) readings") { await notebook.readings.count >= wanted }
            running.cancel()
            _ = await running.result
            rounds += 1
        }
        #expect(await Notebook(file: file).readings == readings)
        #expect(await Notebook(file: file).logger != nil)
        #expect(rounds == wanted.count)
        offering.cancel()
    }

    @Test func errorsSayWhatToDo() async throws {
        let radio = LoopbackRadio()
        for (state, advice) in [
            (AdapterState.unauthorized, "NSBluetoothAlwaysUsageDescription"), (.poweredOff, "switch Bluetooth on"),
            (.unsupported, "no Bluetooth LE"),
        ] {
            let adapter = overCoreBluetooth(radio.makeAdapter(name: "\(state)", state: state))
            let role = adapter.openCentral(Nothing())
            try await until("the state") { adapter.state == state }
            do {
                try role.startScan(ScanRequest())
                Issue.record("a scan began")
            } catch {
                #expect(error.code == .notPoweredOn && error.message.contains(advice), "\(error)")
            }
            role.close()
        }
    }
}

private final class Nothing: CentralRoleEvents {}
