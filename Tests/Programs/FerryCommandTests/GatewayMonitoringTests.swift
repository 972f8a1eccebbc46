#if NATS && Records
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand
    @testable import FerryGateway

    /// The alerts and the board of `Examples/Gateway/Monitoring`; `scripts/check monitoring` has them fire.
    @Suite("Alerts and board of a gateway", .tags(.program)) struct GatewayMonitoringTests {
        private static let folder = packageFolder.appending(path: "Examples/Gateway/Monitoring")

        /// Every figure that a gateway can have.
        private var figures: Set<String> {
            var text = MetricsText()
            text.add(Gateway.Status())
            text.add(StoreSpace())
            text.add(notices: 0)
            text.add(GatewayLatencies())
            text.add(Downlink.Status())
            text.add(LeaseKeeper.Status())
            return Set(text.description.matches(of: #/# TYPE ([a-z_]+) /#).map { String($0.1) })
        }

        private func named(in file: String) throws -> Set<String> {
            let text = try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
            // A histogram's buckets, sum and count go by its name.
            return Set(text.matches(of: #/\b(ferry_[a-z_]+?)(_bucket|_sum|_count)?\b/#).map { String($0.1) })
        }

        @Test("They name figures that there are", arguments: ["alerts.yml", "alerts-test.yml", "board.json"])
        func names(_ file: String) throws {
            let named = try named(in: file)
            #expect(named.count > 5 && named.isSubset(of: figures), "\(named.subtracting(figures).sorted())")
        }

        @Test("The board shows each figure") func board() throws {
            #expect(try named(in: "board.json") == figures)
        }

        @Test("The page has each figure") func page() throws {
            let page = try String(
                contentsOf: packageFolder.appending(path: "Documentation/Gateway.md"), encoding: .utf8)
            for figure in figures { #expect(page.contains("`\(figure)`"), "\(figure)") }
        }

        @Test("Space is what the files take") func space() throws {
            let path = FileManager.default.temporaryDirectory.appending(path: "space-\(UUID().uuidString)").path()
            try Data(count: 1000).write(to: URL(filePath: path))
            try Data(count: 24).write(to: URL(filePath: path + "-wal"))
            defer { for end in ["", "-wal"] { try? FileManager.default.removeItem(atPath: path + end) } }
            let space = StoreSpace(at: path)
            #expect(space.bytes == 1024 && space.free > 0)
        }
    }
#endif
