#if HCI && canImport(CoreBluetoothSwift5Programs)
    import CoreBluetooth
    import CoreBluetoothSwift5Programs
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Programs written against Core Bluetooth, over controllers and against a host stack that nobody here wrote.
    @Suite(.tags(.coreBluetooth, .adapter), .serialized, .exclusive, .timeLimit(.minutes(5)))
    @MainActor struct CoreBluetoothTests {
        /// The well-known transfer sample on both sides, unchanged.
        @Test(arguments: RadioKind.here([.bumble(acl: 251)]))
        func theTransferSampleRunsOverTwoControllers(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let near = try await HCIAdapter.open(radio.channels[0])
            let far = try await HCIAdapter.open(radio.channels[1])
            defer { CBAdapters.use(nil) }
            let text = (0..<100).map { "Line \($0): the quick brown fox.\n" }.joined()
            CBAdapters.use { near }
            let sender = TransferPeripheral(text: text)
            CBAdapters.use { far }
            let receiver = TransferCentral()
            var received: String?
            receiver.onText = { received = $0 }
            try await until("EOM among \(receiver.log)") { received != nil }
            #expect(received == text)
            sender.stop()
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        /// Bumble's central hears a card from a peripheral manager.
        @Test(.withOthers) func aPeripheralManagerServesBumble() async throws {
            let (controllers, paths) = try await Interop.controllers(2)
            defer { controllers.stop() }
            let adapter = try await HCIAdapter.open(.unix(path: paths[0]))
            CBAdapters.use { adapter }
            defer { CBAdapters.use(nil) }
            let server = CardServer()
            try await until("advertising") { server.isAdvertising }
            let central = try Interop.Script("central.py", ["unix-client:\(paths[1])"])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("match = True"))
            try await until("the end of the subscription") { server.hasLeft }
        }
    }

    /// Sends the card in pieces of 20 bytes, then "EOM", to whoever subscribes.
    private final class CardServer: NSObject, CBPeripheralManagerDelegate {
        private let card = Data(
            String(repeating: "The quick brown fox jumps over the lazy dog. ", count: 4).utf8.prefix(158))
        private let characteristic = CBMutableCharacteristic(
            type: CBUUID(string: "9D534E8B-2153-4F6D-B2B0-8C68665A7274"), properties: [.read, .notify], value: nil,
            permissions: .readable)
        private var manager: CBPeripheralManager?
        private var pieces: [Data] = []
        private(set) var isAdvertising = false
        private(set) var hasLeft = false

        override init() {
            super.init()
            manager = CBPeripheralManager(delegate: self, queue: nil)
        }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
            guard peripheral.state == .poweredOn else { return }
            let service = CBMutableService(
                type: CBUUID(string: "E07F0AE8-00BB-47F5-94F4-4A7174EA3032"), primary: true)
            service.characteristics = [characteristic]
            peripheral.add(service)
            peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
        }

        func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
            isAdvertising = error == nil
        }

        func peripheralManager(
            _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
        ) {
            pieces = stride(from: 0, to: card.count, by: 20).map { card.subdata(in: $0..<min($0 + 20, card.count)) }
            pieces.append(Data("EOM".utf8))
            send()
        }

        func peripheralManager(
            _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
        ) {
            hasLeft = true
        }

        func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { send() }

        private func send() {
            while let piece = pieces.first,
                manager?.updateValue(piece, for: characteristic, onSubscribedCentrals: nil) == true
            { pieces.removeFirst() }
        }
    }
#endif
