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

    /// Time whose timers take a moment to be called off, so that whoever is in a hurry gets in between.
    private struct SlowTime: TimeSource {
        let begins: @Sendable () -> Void
        var now: Timestamp { SystemTime().now }
        func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
            let timer = SystemTime().schedule(at: deadline, action)
            return ScheduledTimer {
                begins()
                usleep(20_000)
                timer.cancel()
            }
        }
    }

    @Test func theAdapterIsOnInTheMomentInWhichTheWaitIsCancelled() async throws {
        let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
        for _ in 0..<20 {
            let adapter = QuietAdapter()
            let begun = DispatchSemaphore(value: 0)
            let time = SlowTime { begun.signal() }
            let transport = GATTTransport(adapter: adapter, configuration: layout, time: time)
            let connecting = Task { try? await transport.connect(timeout: .seconds(3600)) }
            #expect(await eventually { adapter.events.withLock { $0 != nil } })
            try await Task.sleep(for: .milliseconds(2))
            let ended = Atomic(0)
            Thread.detachNewThread {
                adapter.events.withLock { $0 }?.centralAdapterDidChange(.poweredOn)
                ended.add(1, ordering: .relaxed)
            }
            Thread.detachNewThread {
                _ = begun.wait(timeout: .now() + 1)
                connecting.cancel()
                ended.add(1, ordering: .relaxed)
            }
            try #require(await eventually { ended.load(ordering: .relaxed) == 2 }, "the two wait for each other")
            _ = await connecting.value
        }
    }
}
