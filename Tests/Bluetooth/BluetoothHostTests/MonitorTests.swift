import TestSupport
import Testing

@testable import BluetoothHost

/// What Linux's monitor channel says, as a btsnoop file.
@Suite(.tags(.host)) struct MonitorTests {
    private func append(_ message: [UInt8], only adapter: UInt16? = nil) -> (BTSnoop.MonitorOutcome, [UInt8]) {
        var output: [UInt8] = []
        let outcome = BTSnoop.appendMonitor(message.span.bytes, microseconds: 0, only: adapter, to: &output)
        return (outcome, output)
    }

    @Test func golden() {
        #expect(BTSnoop.monitorHeader == hex("6274736e6f6f700000000001000007d1"))
        // A command (2) of hci1: Reset.
        let (outcome, record) = append(hex("020001000300030c00"))
        #expect(outcome == .appended(packetOf: 1))
        #expect(record == hex("0000000300000003000100020000000000dcddb30f2f8000030c00"))
    }

    @Test(arguments: [(0, nil), (2, 5), (7, 5), (8, nil), (18, 5), (20, nil)] as [(UInt8, UInt16?)])
    func kinds(opcode: UInt8, packetOf: UInt16?) {
        #expect(append([opcode, 0, 5, 0, 0, 0]).0 == .appended(packetOf: packetOf))
    }

    @Test func oneAdapterOnly() {
        let message: [UInt8] = [3, 0, 5, 0, 1, 0, 9]
        #expect(append(message, only: 5).0 == .appended(packetOf: 5))
        #expect(append(message, only: 4) == (.passedOver, []))
        // A note about the system.
        #expect(append([12, 0, 0xFF, 0xFF, 0, 0], only: 4).0 == .appended(packetOf: nil))
    }

    @Test func cutsAreRecordedAsFarAsTheyGo() {
        for count in 0..<6 { #expect(append(Array(repeating: 3, count: count)) == (.malformed, [])) }
        let (outcome, record) = append([3, 0, 0, 0, 4, 0, 1, 2])
        #expect(outcome == .appended(packetOf: 0))
        #expect(record.prefix(8) == [0, 0, 0, 4, 0, 0, 0, 2])
        #expect(record.suffix(2) == [1, 2])
        // Bytes behind the message's end are not of it.
        #expect(append([3, 0, 0, 0, 0, 0, 1, 2]).1.count == 24)
    }
}
