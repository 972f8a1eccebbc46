import CoreBluetoothSwift5Programs
import CoreBluetoothSwift6Programs
import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySMP
import Foundation
import TestSupport
import Testing

@testable import CoreBluetooth

// One after another with the other programs, because the choice of adapters is the process's.
extension ProgramTests {
    /// Programs in the style of the field's libraries, which lean on more than the documentation says.
    @Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) @MainActor struct LibraryStyleTests {
        private static let document = Data((0..<50_000).map { UInt8(truncatingIfNeeded: $0 / 251) })

        private func exchange(_ document: Data, flood: Bool, quirks: CBQuirks = []) async throws -> (
            Data?, WalletReader
        ) {
            let pair = try Pair { $0.connectionInterval = .milliseconds(1) }
            CBAdapters.use { pair.radio.makeAdapter() }
            CBAdapters.quirks = quirks
            defer {
                CBAdapters.use(nil)
                CBAdapters.quirks = []
            }
            let holder = WalletHolder()
            let reader = WalletReader(document: document)
            var received: Data?
            holder.onDocument = { received = $0 }
            if flood {
                try await until { reader.isReady }
                reader.flood()
            }
            try await until("the document") { received != nil }
            return (received, reader)
        }

        /// One block for each ready call, and no other sign that there is room.
        @Test func aReaderSendsOneBlockForEachReadyCall() async throws {
            let (received, reader) = try await exchange(Self.document, flood: false)
            #expect(received == Self.document)
            #expect(reader.blocks > 90)
        }

        /// Everything at once: what the queue has no room for waits, up to a limit.
        @Test func aFloodOf100KilobytesArrives() async throws {
            let document = Self.document + Self.document
            let (received, _) = try await exchange(document, flood: true)
            #expect(received == document)
        }

        /// In Swift 6 mode, by a manager that has retrieved the peripheral of another: a block for each ready call, or all.
        @Test(arguments: [false, true]) func couriersBringTheirDocuments(atOnce: Bool) async throws {
            let pair = try Pair { $0.connectionInterval = .milliseconds(1) }
            CBAdapters.use { pair.radio.makeAdapter() }
            defer { CBAdapters.use(nil) }
            let holder = WalletHolder()
            var received: Data?
            holder.onDocument = { received = $0 }
            // Both of the courier's managers have one adapter, as a phone has.
            let phone = pair.radio.makeAdapter()
            CBAdapters.use { phone }
            let courier = Courier()
            try await until("\(courier.problems)") { courier.isReady }
            courier.send(Self.document, atOnce: atOnce)
            try await until("the document") { received != nil }
            #expect(received == Self.document)
            #expect(courier.purpose == "courier" && courier.problems.isEmpty)
        }

        @Test func aTransportRetrievesWhatTheAppHasFound() async throws {
            let peripheral = DemoPeripheral()
            for _ in 1...12 {
                let finder = Finder(service: CBUUID(string: "CDD1"))
                try await until { finder.peripheral != nil }
                let transport = Transport(try some(finder.peripheral))
                try await until("\(transport.lines)") {
                    ["connected", "unknown", "failed"].contains(transport.lines.last)
                }
                #expect(transport.lines == ["waits", "connects", "connected"])
            }
            withExtendedLifetime(peripheral) {}
        }

        /// Values of 67 bytes, as after an exchange of small ATT_MTUs: some 1600 requests, one at a time.
        @Test(arguments: [CBQuirks(), .readyOnlyAfterFullQueue, .shallowWriteQueue, .cachedServices])
        func managerCarriesAFileToADevice(_ quirks: CBQuirks) async throws {
            let file = Data((0..<60_000).map { UInt8(truncatingIfNeeded: $0 / 253) })
            let pair = try Pair {
                $0.attMTU = 70
                $0.transmitQueueDepth = 1
            }
            CBAdapters.use { pair.radio.makeAdapter() }
            CBAdapters.quirks = quirks
            defer {
                CBAdapters.use(nil)
                CBAdapters.quirks = []
            }
            let device = SMPDevice()
            let listener = try await GATTTransport(adapter: pair.far, configuration: .smp).listen()
            let serving = Task {
                var responders: [SMPResponder] = []
                for await link in listener.links { responders.append(try SMPResponder(over: link, device)) }
            }
            let finder = Finder(service: CBUUID(string: "8D53DC1D-1DB7-4CD3-868B-8A527460AA84"))
            try await until("the device") { finder.peripheral != nil }
            let uploader = FileUploader(try some(finder.peripheral))
            var result: Result<Int, any Error>?
            uploader.upload(file, as: "/lfs/a", timeout: 20) { result = $0 }
            try await until("the file; \(uploader.requests) requests") { result != nil }
            #expect(try result?.get() == file.count)
            #expect(device.server.files["/lfs/a"] == Array(file))
            #expect(uploader.requests > 1300 && device.server.requestCount == uploader.requests)
            uploader.close()
            listener.close()
            _ = await serving.result
        }

        @Test func twoManagersFindTheSamePeripheral() async throws {
            let peripheral = DemoPeripheral()
            let finders = [Finder(service: CBUUID(string: "CDD1")), Finder(service: CBUUID(string: "CDD1"))]
            try await until { finders.allSatisfy { $0.peripheral != nil } }
            #expect(finders[0].peripheral?.identifier == finders[1].peripheral?.identifier)
            #expect(finders[0].peripheral !== finders[1].peripheral)
            withExtendedLifetime(peripheral) {}
        }

        /// A manager whose first update waits for a delegate longer than any test.
        private static func patient<Manager: CBManager>(_ make: (DispatchQueue) -> Manager) -> Manager {
            let queue = DispatchQueue(label: "late")
            queue.suspend()
            defer { queue.resume() }
            let manager = make(queue)
            manager.longestWait = 3600
            return manager
        }

        /// The first update waits for whom it is for.
        @Test func lateDelegatesAreTold() async throws {
            var told = 0
            for round in 0..<200 {
                let pair = try Pair()
                let manager = Self.patient {
                    CBCentralManager(delegate: nil, queue: $0, options: nil, adapter: pair.near)
                }
                if round % 2 == 0 { try await until("the first update") { manager.hasUntoldState } }
                #expect(manager.state == .unknown, "nobody has been told")
                let delegate = LateDelegate()
                manager.delegate = delegate
                try await until { delegate.states.all == ["poweredOn"] }
                told += 1
            }
            #expect(told == 200)
        }

        @Test func latePeripheralDelegatesAreTold() async throws {
            for _ in 0..<20 {
                let pair = try Pair()
                let manager = Self.patient {
                    CBPeripheralManager(delegate: nil, queue: $0, options: nil, adapter: pair.near)
                }
                try await until("the first update") { manager.hasUntoldState }
                #expect(manager.state == .unknown)
                let delegate = LateDelegate()
                manager.delegate = delegate
                try await until { delegate.states.all == ["poweredOn"] }
            }
        }

        /// A program that only looks at the state sees it, if a little later.
        @Test func aStateThatNobodyIsToldOfIsShownInTheEnd() async throws {
            let pair = try Pair()
            let manager = CBCentralManager(
                delegate: nil, queue: DispatchQueue(label: "nobody"), options: nil, adapter: pair.near)
            try await until { manager.state == .poweredOn }
            let delegate = LateDelegate()
            manager.delegate = delegate
            try await until { delegate.states.all == ["poweredOn"] }
        }

        @Test func asyncWrappersAreTold() async {
            let central = AsyncCentral()
            #expect(await central.waitUntilReady() == .poweredOn)
            #expect(await central.state() == .poweredOn)
        }

        @Test func connectingTooEarlyIsReported() async throws {
            let pair = try Pair()
            let peripheral = PeripheralSide(on: pair.far)
            try await peripheral.begin()
            let side = CentralSide(on: pair.near)
            let found = try await side.find()
            let other = CentralSide(on: pair.near)
            try await other.journal.wait(for: "state poweredOn")
            other.manager.connect(found)
            try await other.journal.wait(for: "failed CBError unknownDevice")
            pair.near.setState(.poweredOff)
            try await side.journal.wait(for: "state poweredOff")
            side.manager.connect(found)
            try await side.journal.wait(for: "failed CBError notConnected")
        }

        @Test func subclassesAndMocksAreMade() {
            let central = NotingCentralManager(
                delegate: nil, queue: nil, options: [CBCentralManagerOptionShowPowerAlertKey: false])
            #expect(central.notes == [CBCentralManagerOptionShowPowerAlertKey])
            #expect(NotingCentralManager(delegate: nil, queue: nil).notes.isEmpty)
            #expect(NotingCentralManager().notes.isEmpty)
            #expect(NotingPeripheralManager(delegate: nil, queue: nil).isMade)
            #expect(MockChannel().psm == 0x99)
            #expect(MockUUID().data.count == 16 || MockUUID().data.count == 2)
            let (uuid, channel, timer) = makeMocks()
            #expect(uuid == CBUUID() && uuid != CBUUID(string: "180D"))
            #expect(
                channel.inputStream == nil && channel.outputStream == nil && channel.peer == nil && channel.psm == 0)
            timer.invalidate()
        }

        /// What compiles here in Swift 6 must compile there.
        @Test func nothingIsMoreSendableThanApples() {
            let sendabilities = sendabilities()
            let values: Set = ["CBManagerState", "CBError", "CBATTError.Code", "CBCharacteristicProperties"]
            #expect(sendabilities.count == 15)
            for (name, sendability) in sendabilities {
                #expect(sendability == (values.contains(name) ? "sendable" : "not sendable"), "\(name)")
            }
        }

        @Test func codesWithoutNamesKeepTheirNumbers() {
            for number in [0x12, 0x80, 0x9F, 0xFD, 1000] {
                #expect(CBATTError.Code(rawValue: number)?.rawValue == number)
                #expect(CBError.Code(rawValue: number + 7)?.rawValue == number + 7)
            }
            let error = CBATTError(_nsError: NSError(domain: CBATTErrorDomain, code: 0x80))
            #expect(error.code.rawValue == 0x80 && error.code != .unlikelyError)
            #expect(error.code == CBATTError.Code(rawValue: 0x80))
            #expect(explain(error) == "the device is busy")
            #expect(explain(CBATTError(.insufficientEncryption)) == "pair first")
            #expect(explain(CBError(.connectionTimeout)) == "gone")
            #expect(Courier.text(error) == "the device's own error 128")
            #expect(Courier.text(CBATTError(.insufficientAuthentication)) == "pair first")
            #expect(explain(CBATTError(_nsError: NSError(domain: CBATTErrorDomain, code: 0x99))) == "ATT 153")
        }

        @Test func standInsStandIn() { #expect(usesStandIns() == "strap") }
    }
}

private final class LateDelegate: NSObject, CBCentralManagerDelegate, CBPeripheralManagerDelegate, Sendable {
    let states = Journal()
    func centralManagerDidUpdateState(_ central: CBCentralManager) { states.add("\(central.state)") }
    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) { states.add("\(peripheral.state)") }
}

/// The guide's code is the code that is compiled.
@Suite(.tags(.coreBluetooth)) struct GuideTests {
    @Test func theGuideShowsTheStandInsThatAreCompiled() throws {
        let code = try String(
            contentsOf: packageFolder.appending(path: "Tests/CoreBluetoothSwift5Programs/StandIns.swift"),
            encoding: .utf8)
        let guide = try String(
            contentsOf: packageFolder.appending(
                path: "Plugins/Apple/CoreBluetooth/CoreBluetooth.docc/CoreBluetoothOnLinux.md"), encoding: .utf8)
        let shown = guide.components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "\n```").first }.first { $0.contains("objc_sync_enter") }
        #expect(code.contains(try some(shown)))
    }
}
