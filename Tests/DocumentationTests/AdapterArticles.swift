#if HCI
    import FerryHCI

    func openHCI() async throws -> HCIAdapter {
        let adapter = try await HCIAdapter.open(HCIChannel("hci:tcp:127.0.0.1:9001"))
        return adapter
    }
#endif

#if BlueZ
    import FerryBlueZ

    func openBlueZ() async throws -> BlueZAdapter {
        let adapter = try await BlueZAdapter.open("bluez:hci0")  // or "bluez" for the first adapter
        return adapter
    }
#endif
