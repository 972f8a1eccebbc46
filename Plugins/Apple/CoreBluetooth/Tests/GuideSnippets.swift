import FerryLoopback

#if targetEnvironment(simulator)
    import FerryVirtualBluetooth
#else
    import CoreBluetooth
#endif

/// What the guide CoreBluetoothOnLinux shows, as it stands there.
private func choosesARadio() throws {
    // A test decides how the radio behaves: slow, short of space, and losing one value in a hundred.
    var configuration = LoopbackRadio.Configuration()
    configuration.connectionInterval = .milliseconds(15)
    configuration.transmitQueueDepth = 4
    configuration.faults = .init(seed: 1, probabilities: [.lose: 0.01])
    let radio = try LoopbackRadio(configuration: configuration)
    CBAdapters.use { radio.makeAdapter() }
}
