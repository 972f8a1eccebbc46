#if HCI
    import BluetoothHost
    import FerryHCI

    func openHCI() async throws -> HCIAdapter {
        let adapter = try await HCIAdapter.open(HCIChannel("hci:tcp:127.0.0.1:9001"))
        return adapter
    }

    func openHCIThatPairs() async throws -> HCIAdapter {
        var pairing = HCIPairing()
        pairing.capability = .keyboardDisplay
        pairing.agent = TerminalAgent()
        pairing.requiresAuthentication = true
        pairing.bondFile = "bonds.json"
        var configuration = HCIConfiguration()
        configuration.pairing = pairing
        let adapter = try await HCIAdapter.open(HCIChannel("hci:user:0"), configuration)
        return adapter
    }
#endif

#if BlueZ
    import FerryBlueZ

    func openBlueZ() async throws -> BlueZAdapter {
        let adapter = try await BlueZAdapter.open("bluez:hci0")  // or "bluez" for the first adapter
        return adapter
    }

    func openBlueZThatPairs() async throws -> BlueZAdapter {
        var pairing = BlueZPairing()
        pairing.capability = .keyboardDisplay
        pairing.agent = TerminalAgent()
        let adapter = try await BlueZAdapter.open("bluez", pairing: pairing)
        return adapter
    }
#endif
