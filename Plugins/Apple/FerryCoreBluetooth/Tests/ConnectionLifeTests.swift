import FerryBluetooth
import TestSupport
import Testing

@testable import FerryCoreBluetooth

/// Every state of a connection over CoreBluetooth with every event.
@Suite(.tags(.adapter, .coreBluetooth)) struct ConnectionLifeTests {
    private typealias Life = CoreBluetoothConnection.Life

    private final class Owner: PeripheralConnectionEvents {
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {}
        func peripheralIsReadyToWrite() {}
        func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {}
        func peripheralDidChangeMTU(_ attMTU: Int) {}
        func peripheralDidModifyServices(_ services: [AttributeID]) {}
        func peripheralDidDisconnect(_ reason: BluetoothError) {}
    }

    private func describe(_ life: Life) -> String {
        switch life {
        case .connecting: "connecting"
        case .connected: "connected"
        case .closing(_, let wasConnected): wasConnected ? "closing" : "calling off"
        case .ended(let reason): "ended \(reason.code)"
        }
    }

    /// For each state: the next one when the framework connects, when the owner closes, when the peer is lost, and when the
    /// adapter goes off; a sign after it where something is to be done or the owner is told.
    @Test func everyStateWithEveryEvent() {
        let owner = Owner()
        let table: [(Life, connects: String, closes: String, lost: String, off: String, reason: BluetoothError.Code?)] =
            [
                (
                    .connecting(owner), "connected", "calling off!", "ended connectionTimeout", "ended notPoweredOn",
                    nil
                ),
                (.connected(owner), "connected", "closing!", "ended connectionTimeout!", "ended notPoweredOn!", nil),
                (
                    .closing(owner, wasConnected: false), "closing", "calling off", "ended disconnectedLocally",
                    "ended notPoweredOn", .disconnectedLocally
                ),
                (
                    .closing(owner, wasConnected: true), "closing", "closing", "ended disconnectedLocally!",
                    "ended notPoweredOn!", .disconnectedLocally
                ),
                (
                    .ended(.endedHere), "ended disconnectedLocally", "ended disconnectedLocally",
                    "ended disconnectedLocally",
                    "ended disconnectedLocally", .disconnectedLocally
                ),
            ]
        for row in table {
            let start = describe(row.0)
            var life = row.0
            life.didConnect()
            #expect(describe(life) == row.connects, "\(start)")
            life = row.0
            let isClosing = life.close()
            #expect(describe(life) + (isClosing ? "!" : "") == row.closes, "\(start)")
            for (code, expected) in [
                (.connectionTimeout, row.lost), (.notPoweredOn, row.off),
            ] as [(BluetoothError.Code, String)] {
                life = row.0
                let told = life.end(BluetoothError(code, "test"))
                #expect(describe(life) + (told == nil ? "" : "!") == expected, "\(start)")
                #expect(life.events == nil && life.hasEnded, "\(start)")
            }
            #expect(row.0.reason?.code == row.reason, "\(start)")
        }
    }
}
