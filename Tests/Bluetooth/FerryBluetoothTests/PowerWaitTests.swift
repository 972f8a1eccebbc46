import Ferry
import FerryBluetooth
import Foundation
import Synchronization
import TestSupport
import Testing

/// Waiting for an adapter that says in the same moment that it is on, and by whom it is used no more.
@Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct PowerWaitTests {
    /// An adapter of which nothing is heard but what the test says.
    private final class QuietAdapter: BluetoothAdapter {
        private final class Role: CentralRole {
            func startScan(_ request: ScanRequest) throws(BluetoothError) {}
            func stopScan() {}
            func connect(to peripheral: PeerID, events: any PeripheralConnectionEvents) async throws(BluetoothError)
                -> any PeripheralConnection
            { throw .notConnected }
            func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] { [] }
            func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? { nil }
            func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] { [] }
            func close() {}
        }

        let events = Mutex<(any CentralRoleEvents)?>(nil)
        var name: String { "quiet" }
        var state: AdapterState { .unknown }

        func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
            self.events.withLock { $0 = events }
            return Role()
        }
        func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole { fatalError("nobody listens") }
    }

    /// Time whose first timer to be called off waits for `begins`, so that another thread gets in between.
    private struct SlowTime: TimeSource {
        let time = VirtualTime()
        let begins: @Sendable () -> Void
        var now: Timestamp { time.now }
        func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
            let timer = time.schedule(at: deadline, action)
            return ScheduledTimer {
                begins()
                timer.cancel()
            }
        }
    }

    @Test func theAdapterIsOnInTheMomentInWhichTheWaitIsCancelled() async throws {
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        for _ in 0..<20 {
            let adapter = QuietAdapter()
            let begun = DispatchSemaphore(value: 0)
            let isCancelling = DispatchSemaphore(value: 0)
            let isFirst = Atomic(true)
            let time = SlowTime {
                guard isFirst.exchange(false, ordering: .relaxed) else { return }
                begun.signal()
                // The cancellation may wait for a lock, and nothing tells of that: it has some turns to come so far.
                isCancelling.wait()
                for _ in 0..<200 { sched_yield() }
            }
            let transport = GATTTransport(adapter: adapter, configuration: layout, time: time)
            let connecting = Task { try? await transport.connect(timeout: .unreached) }
            try await until("the wait for the adapter") {
                adapter.events.withLock { $0 != nil } && time.time.timerCount > 0
            }
            let ended = Atomic(0)
            Thread.detachNewThread {
                adapter.events.withLock { $0 }?.centralAdapterDidChange(.poweredOn)
                ended.add(1, ordering: .relaxed)
            }
            Thread.detachNewThread {
                begun.wait()
                isCancelling.signal()
                connecting.cancel()
                ended.add(1, ordering: .relaxed)
            }
            try await until("the end of two that wait for each other") { ended.load(ordering: .relaxed) == 2 }
            _ = await connecting.value
        }
    }
}
