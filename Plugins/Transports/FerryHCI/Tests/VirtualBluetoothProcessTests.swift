#if HCI && canImport(CoreBluetoothRig)
    import FerryHCI
    import FerryVirtualBluetooth
    import Synchronization
    import TestSupport
    import Testing

    /// Apps in two processes, as in two simulators. They import one module, and the environment names a controller for each.
    @Suite(.tags(.coreBluetooth, .adapter), .timeLimit(.minutes(2))) struct VirtualBluetoothProcessTests {
        private static var service: CBUUID { CBUUID(string: "FE01") }
        private static var characteristic: CBUUID { CBUUID(string: "FE02") }
        private static let values = (UInt8(1)...20).map { Data(repeating: $0, count: 20) }

        /// Sends its values to who subscribes.
        private final class Sensor: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
            let isDone = Mutex(false)
            private let characteristic = CBMutableCharacteristic(
                type: VirtualBluetoothProcessTests.characteristic, properties: .notify, value: nil,
                permissions: .readable)
            private var manager: CBPeripheralManager?
            private var waiting = VirtualBluetoothProcessTests.values[...]

            func start() { manager = CBPeripheralManager(delegate: self, queue: DispatchQueue(label: "sensor")) }

            func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
                guard peripheral.state == .poweredOn else { return }
                let service = CBMutableService(type: VirtualBluetoothProcessTests.service, primary: true)
                service.characteristics = [characteristic]
                peripheral.add(service)
            }

            func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
                peripheral.startAdvertising([
                    CBAdvertisementDataServiceUUIDsKey: [VirtualBluetoothProcessTests.service]
                ])
            }

            func peripheralManager(
                _ peripheral: CBPeripheralManager, central: CBCentral,
                didSubscribeTo characteristic: CBCharacteristic
            ) {
                send(peripheral)
            }

            func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { send(peripheral) }

            private func send(_ peripheral: CBPeripheralManager) {
                while let next = waiting.first,
                    peripheral.updateValue(next, for: characteristic, onSubscribedCentrals: nil)
                {
                    waiting.removeFirst()
                }
            }

            /// Its process has ended.
            func peripheralManager(
                _ peripheral: CBPeripheralManager, central: CBCentral,
                didUnsubscribeFrom characteristic: CBCharacteristic
            ) {
                isDone.withLock { $0 = true }
            }
        }

        /// Takes them.
        private final class Reader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
            let values = Mutex<[Data]>([])
            private var manager: CBCentralManager?
            private var sensor: CBPeripheral?

            func start() { manager = CBCentralManager(delegate: self, queue: DispatchQueue(label: "reader")) }

            func centralManagerDidUpdateState(_ central: CBCentralManager) {
                guard central.state == .poweredOn else { return }
                central.scanForPeripherals(withServices: [VirtualBluetoothProcessTests.service])
            }

            func centralManager(
                _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
                rssi RSSI: NSNumber
            ) {
                central.stopScan()
                sensor = peripheral
                peripheral.delegate = self
                central.connect(peripheral)
            }

            func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
                peripheral.discoverServices([VirtualBluetoothProcessTests.service])
            }

            func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
                for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
            }

            func peripheral(
                _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
            ) {
                for characteristic in service.characteristics ?? [] {
                    peripheral.setNotifyValue(true, for: characteristic)
                }
            }

            func peripheral(
                _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
            ) {
                values.withLock { $0.append(characteristic.value ?? Data()) }
            }
        }

        @Test func appsInTwoProcessesMeetByTheEnvironmentAlone() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let (first, second) = ("\(radio.channels[0])", "\(radio.channels[1])")
            async let sensing = #expect(processExitsWith: .success) { [first = first as String] in
                setenv(CBAdapters.environmentVariable, first, 1)
                let sensor = Sensor()
                sensor.start()
                try await until("the reader has gone") { sensor.isDone.withLock { $0 } }
            }
            async let reading = #expect(processExitsWith: .success) { [second = second as String] in
                setenv(CBAdapters.environmentVariable, second, 1)
                let reader = Reader()
                reader.start()
                try await until("all values are here") { reader.values.withLock { $0.count } == Self.values.count }
                try #require(reader.values.withLock { $0 } == Self.values)
            }
            _ = await (sensing, reading)
            #expect(radio.complaints.isEmpty)
        }

        /// Nothing listens there.
        @Test func controllerThatIsNotThereLeavesManagersUnsupported() async throws {
            let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
                setenv(CBAdapters.environmentVariable, "hci:unix:/nonexistent/controller", 1)
                for _ in 1...2 {
                    let reader = Reader()
                    let manager = CBCentralManager(delegate: reader, queue: DispatchQueue(label: "reader"))
                    try await until("the state is told") { manager.state == .unsupported }
                }
            }
            let told = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(
                told.components(separatedBy: "Cannot reach an HCI controller at hci:unix:/nonexistent/controller").count
                    == 3,
                "each manager tries anew: \(told)")
        }

        /// Managers that are released before their adapter is open.
        @Test func managersThatGoAtOnceLeaveNothing() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            await #expect(processExitsWith: .success) { [first = "\(radio.channels[0])" as String] in
                setenv(CBAdapters.environmentVariable, first, 1)
                for _ in 0..<20 {
                    _ = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "gone"))
                    _ = CBPeripheralManager(delegate: nil, queue: DispatchQueue(label: "gone"))
                }
                let reader = Reader()
                let manager = CBCentralManager(delegate: reader, queue: DispatchQueue(label: "reader"))
                try await until("it is powered on") { manager.state == .poweredOn }
            }
            #expect(radio.complaints.isEmpty)
        }
    }
#endif
