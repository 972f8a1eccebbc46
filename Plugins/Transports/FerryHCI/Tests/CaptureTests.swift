#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// What Wireshark's dissectors, which nobody here wrote, make of a capture.
    @Suite(.tags(.adapter), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct CaptureTests {
        @Test(arguments: RadioKind.two)
        func tsharkExtractsWhatWasSent(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let files = ["server", "client"].map { Interop.file($0) + ".btsnoop" }
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.capture = files[0] }
            let client = try await Client.open(radio.channels[1]) { $0.capture = files[1] }
            let connection = try await client.connect()
            let (id, secret) = try await client.discover(connection)
            #expect(try await connection.readValue(of: secret) == Layout.pattern(30))
            #expect(try await client.collect(connection, id, .notify) == Layout.pattern(600))
            #expect(try await client.collect(connection, id, .indicate) == Layout.pattern(600))
            try await connection.writeValue(Layout.pattern(512), to: id)
            connection.disconnect()
            try await client.journal.wait(for: "disconnected")
            client.close()
            server.close()
            adapter.close()
            for file in files {
                let packets = try await dissect(file)
                #expect(packets.count > 100)
                for (opcode, count) in [("0x1b", 600), ("0x1d", 600), ("0x12", 512)] {
                    let sent = packets.filter { $0[1] == opcode }.flatMap { bytes($0[2]) }
                    // The host's own write says what it understands, Client Supported Features: when it connects, and once
                    // more when the two have paired and it looks at the server anew.
                    #expect(sent == (opcode == "0x12" ? [5, 5] : []) + Layout.pattern(count), "\(opcode)")
                }
                #expect(!packets.contains { $0[0].contains("malformed") })
                #expect(packets.contains { $0[0].contains("btsmp") && $0[3] == "0x0c" })
                #expect(packets.contains { $0[4] == "0x0c03" })
            }
        }

        /// For each packet the protocols in it, ATT opcode and value, SMP opcode and HCI command.
        private func dissect(_ file: String) async throws -> [[Substring]] {
            let fields = ["frame.protocols", "btatt.opcode", "btatt.value", "btsmp.opcode", "bthci_cmd.opcode"]
            let output = try await Interop.run("tshark", ["-r", file, "-T", "fields"] + fields.flatMap { ["-e", $0] })
            return output.split(separator: "\n").map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
                .filter { $0.count == fields.count }
        }
    }
#endif
