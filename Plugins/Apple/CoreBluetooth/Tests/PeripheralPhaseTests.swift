import FerryBluetooth
import TestSupport
import Testing

@testable import CoreBluetooth

/// Every phase of a peripheral's connection with every event.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct PeripheralPhaseTests {
    private let connection = ScriptedConnection(Journal(), nil)
    private let late = BluetoothError(.connectionTimeout, "late")
    private let early = BluetoothError(.disconnectedByPeer, "early")

    private func describe(_ phase: PeripheralPhase) -> String {
        switch phase {
        case .idle: "idle"
        case .connecting(_, let end): "connecting" + (end.map { " " + $0.message } ?? "")
        case .cancelling(let end): "cancelling" + (end.map { " " + $0.message } ?? "")
        case .connected: "connected"
        case .disconnecting: "disconnecting"
        case .ended: "ended"
        }
    }

    private func describe(_ action: PeripheralPhase.Action) -> String {
        switch action {
        case .none: "-"
        case .reportConnected: "report connected"
        case .reportConnectedAndEnded(let reason): "report connected, ended \(reason.message)"
        case .reportFailed(let error): "report failed \(error.message)"
        case .reportEnded(let reason): "report ended \(reason?.message ?? "here")"
        case .cancel: "cancel"
        case .disconnect: "disconnect"
        case .disconnectAndReportEnded: "disconnect, report ended here"
        }
    }

    /// For each phase: the action and the next phase when `connect` returns, when it throws, when the program cancels, and
    /// when the adapter reports the end.
    @Test func everyPhaseWithEveryEvent() {
        let task = Task {}
        let table: [(PeripheralPhase, returns: String, throws: String, cancel: String, ends: String)] = [
            (.idle, "disconnect: idle", "-: idle", "report ended here: ended", "-: idle"),
            (
                .connecting(task, end: nil), "report connected: connected", "report failed late: ended",
                "cancel: cancelling", "-: connecting late"
            ),
            (
                .connecting(task, end: early), "report connected, ended early: ended", "report failed late: ended",
                "cancel: cancelling early", "-: connecting early"
            ),
            (
                .cancelling(end: nil), "disconnect: disconnecting", "report ended here: ended", "-: cancelling",
                "-: cancelling late"
            ),
            (
                .cancelling(end: early), "disconnect, report ended here: ended", "report ended here: ended",
                "-: cancelling early", "-: cancelling early"
            ),
            (
                .connected(connection), "disconnect: connected", "-: connected", "disconnect: disconnecting",
                "report ended late: ended"
            ),
            (
                .disconnecting(connection), "disconnect: disconnecting", "-: disconnecting", "-: disconnecting",
                "report ended here: ended"
            ),
            (.ended, "disconnect: ended", "-: ended", "-: ended", "-: ended"),
        ]
        for row in table {
            let start = describe(row.0)
            func outcome(_ event: (inout PeripheralPhase) -> PeripheralPhase.Action) -> String {
                var phase = row.0
                let action = event(&phase)
                return "\(describe(action)): \(describe(phase))"
            }
            #expect(outcome { $0.didConnect(connection) } == row.returns, "\(start)")
            #expect(outcome { $0.didFail(late) } == row.throws, "\(start)")
            #expect(outcome { $0.cancel() } == row.cancel, "\(start)")
            #expect(outcome { $0.didDisconnect(late) } == row.ends, "\(start)")
            #expect((row.0.usable != nil) == (start == "connected"), "\(start)")
            #expect((row.0.connection != nil) == (start == "connected" || start == "disconnecting"), "\(start)")
        }
    }

    /// A session that is cancelled before its connection is asked for reports its end and never connects.
    @Test func cancelledBeforeStartNeverConnects() async throws {
        let adapter = ScriptedAdapter()
        let side = CentralSide(on: adapter)
        let peripheral = try await side.find()
        let session = PeripheralSession(peripheral, side.manager.callbacks, [], reconnects: false)
        peripheral.contents { contents in
            contents.session = session
            contents.state = .disconnecting
        }
        session.cancel()
        session.start(adapter.central, to: ScriptedAdapter.peer, delay: 0)
        try await side.journal.wait(for: "disconnected ok")
        #expect(adapter.journal.count("connect") == 0)
        #expect(peripheral.state == .disconnected)
    }
}
