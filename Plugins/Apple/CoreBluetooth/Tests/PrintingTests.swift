@testable import CoreBluetooth
import FerryBluetooth
import Foundation
import TestSupport
import Testing

/// What programs print and log: the forms are those of Apple's logs in the trackers of libraries.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct PrintingTests {
    @Test func errorsPrintAsApples() {
        let error = BluetoothError(.connectionTimeout, "nothing was heard for 720 ms").asCoreBluetooth
        let line =
            "Error Domain=CBErrorDomain Code=6 \"The connection has timed out unexpectedly.\" "
            + "UserInfo={NSLocalizedDescription=The connection has timed out unexpectedly.}"
        #expect("\(error)" == line)
        #expect(error.localizedDescription == "The connection has timed out unexpectedly.")
        #expect((error as NSError).userInfo["CoreBluetoothReason"] as? String == "nothing was heard for 720 ms")
        let refused = BluetoothError(.att(.insufficientEncryption), "refused").asCoreBluetooth
        #expect(
            "\(refused)" == "Error Domain=CBATTErrorDomain Code=15 \"Encryption is insufficient.\" "
                + "UserInfo={NSLocalizedDescription=Encryption is insufficient.}")
        #expect("\(CBError(.unknownDevice))" == "Error Domain=CBErrorDomain Code=12 \"(null)\"")
        #expect(
            BluetoothError(.att(ATTError(rawValue: 0x85)), "?").asCoreBluetooth.localizedDescription
                == "Unknown ATT error.")
    }

    @Test func objectsPrintAsApples() async throws {
        let pair = try Pair()
        let far = PeripheralSide(on: pair.far)
        try await far.begin(name: "strap")
        let near = CentralSide(on: pair.near)
        let found = try await near.find()
        let place = "0x" + String(UInt(bitPattern: Unmanaged.passUnretained(found).toOpaque()), radix: 16)
        let head = "<CBPeripheral: \(place), identifier = \(found.identifier), name = strap, mtu = "
        #expect("\(found)" == head + "0, state = disconnected>")
        near.manager.connect(found)
        try await near.journal.wait(for: "connected")
        let characteristic = try await near.discover(found)
        #expect("\(found)".hasPrefix(head) && "\(found)".hasSuffix(", state = connected>"))
        #expect(!"\(found)".contains("mtu = 0"))
        let service = try some(found.services?.first)
        #expect("\(service)".hasPrefix("<CBService: 0x"))
        #expect("\(service)".hasSuffix(", isPrimary = YES, UUID = \(testService)>"))
        #expect(
            "\(characteristic)".hasSuffix(
                ", UUID = \(testCharacteristic), properties = 0x1A, value = (null), notifying = NO>"))
    }

    @Test func bytesPrintAsApples() {
        let object = NSObject()
        #expect(object.printed(Data([0x00, 0x8F])) == "{length = 2, bytes = 0x008f}")
        #expect(object.printed(nil as Data?) == "(null)")
        #expect(
            object.printed(Data(0..<32))
                == "{length = 32, bytes = 0x00010203 04050607 08090a0b 0c0d0e0f ... 18191a1b 1c1d1e1f }")
    }
}
