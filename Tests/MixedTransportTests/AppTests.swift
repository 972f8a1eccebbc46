#if HCI && BlueZ && canImport(CoreBluetoothRig)
    import CoreBluetoothRig
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import Foundation
    import Testing

    extension MixedTests {
        /// Each framing once; each in both roles, which takes twice the time, with FERRY_MESSAGES in the environment.
        private static let appPairs: [(Way, Mix)] = {
            let framings: [Mix] = [.endOfMessage, .lengthPrefix, .sequenced]
            guard ProcessInfo.processInfo.environment["FERRY_MESSAGES"] == nil else {
                return Way.allCases.flatMap { way in framings.map { (way, $0) } }
            }
            return Array(zip([.bluezServes, .hostServes, .bluezServes], framings))
        }()

        /// Between an app's adapter, over Core Bluetooth over Ferry's host, and bluetoothd.
        @Test(arguments: appPairs) func messagesCrossBetweenAnAppAndBluetoothd(way: Way, mix: Mix) async throws {
            let (peripheral, central, host) = try await way.open(mtu: 185)
            defer { host.close() }
            let serving: any BluetoothAdapter = way == .hostServes ? overCoreBluetooth(host) : peripheral
            let asking: any BluetoothAdapter = way == .bluezServes ? overCoreBluetooth(host) : central
            try await mix.exchange(from: serving, to: asking)
        }
    }
#endif
