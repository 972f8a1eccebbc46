#if BlueZ
    import TestSupport
    import Testing

    @testable import FerryBlueZ

    /// How many ATT bearers bluetoothd has: as main.conf says, or its version.
    @Suite(.tags(.adapter)) struct BearersTests {
        @Test(arguments: [
            ("[GATT]\nChannels = 1\n", 1), ("[GATT]\r\n  Channels=2\r\n", 2),
            ("[GATT]\nChannels = 1\nChannels = 5\n", 5),
            // Only what is said, in its group, in a file without an error.
            ("[GATT]\nChannels = 1\nClient\n", 3), ("Cache\n[GATT]\nChannels = 1\n", 3),
            ("[GATT]\n#Channels = 1\n", 3), ("[General]\nChannels = 1\n", 3), ("[GATT]\nChannels = 0\n", 3),
            ("[GATT]\nChannels = 6\n", 6),
            ("[GATT]\nChannels = one\n", 3), ("[GATT]\n[Policy]\nChannels = 1\n", 3), ("Channels = 1", 3),
            ("[GATT\nChannels = 1", 3), ("=\n[]\n]\n[", 3), ("", 3),
        ])
        func itsConfigurationSaysSo(text: String, count: Int) {
            #expect(Bearers.count(configuration: text, modalias: "usb:v1D6Bp0246d0542") == count)
        }

        @Test(arguments: [
            ("usb:v1D6Bp0246d0542", 3), ("usb:v1D6Bp0246d0543", 1), ("bluetooth:v1D6Bp0246d0556", 1),
            // A device of somebody's own tells no version.
            ("usb:v05ACp0246d0543", 3), ("usb:v1D6Bp0246dzzzz", 3), ("", 3), (nil, 3),
        ])
        func itsVersionTells(modalias: String?, count: Int) {
            #expect(Bearers.count(configuration: nil, modalias: modalias) == count)
        }

        @Test func aFileThatIsNotThereSaysNothing() { #expect(Bearers.read("/nowhere/main.conf") == nil) }
    }
#endif
