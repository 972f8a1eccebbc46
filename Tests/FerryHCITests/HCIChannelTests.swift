#if HCI
    import FerryBluetooth
    import FerryHCI
    import Testing

    @Suite struct HCIChannelTests {
        @Test(arguments: ["hci:tcp:127.0.0.1:9001", "hci:tcp:::1:65535", "hci:unix:/tmp/hci.sock", "hci:unix:a:b"])
        func specificationsAreReadAndPrinted(text: String) throws {
            #expect("\(try HCIChannel(text))" == text)
        }

        @Test(arguments: [
            "", "hci", "hci:tcp", "hci:tcp:host", "hci:tcp:host:0", "hci:tcp:host:65536", "hci:tcp::9", "hci:unix:",
            "hci:user:x", "tcp:host:1", "hci:unix:" + String(repeating: "x", count: 108),
        ])
        func othersAreRefusedWithWhatIsAccepted(text: String) {
            let error = #expect(throws: BluetoothError.self) { try HCIChannel(text) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("hci:tcp:HOST:PORT") == true)
        }

        @Test func nobodyThereIsSaidSo() async {
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await HCIAdapter.open(.unix(path: "/nonexistent/hci.sock"))
            }
            #expect(error?.code == .notPoweredOn)
            #expect(error?.message.contains("hci:unix:/nonexistent/hci.sock") == true)
        }
    }
#endif
