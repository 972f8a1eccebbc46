import Ferry
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// What it takes to set up many connections of one radio.
@Suite(.tags(.adapter)) struct ManyConnectionsTests {
    /// The processor's time that the radio takes while `count` centrals scan for one peripheral and connect to it.
    private func setUp(_ count: Int) async throws -> Double {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let server = radio.makeAdapter()
        let peripheral = server.openPeripheral(PeripheralOwner())
        _ = try await peripheral.publish(World.definition())
        _ = try await peripheral.startAdvertising(Advertisement(services: [testService]))
        var kept: [any Sendable] = [peripheral]
        var spent = 0.0
        for _ in 0..<count {
            let adapter = radio.makeAdapter()
            let owner = CentralOwner()
            let central = adapter.openCentral(owner)
            spent += try Self.processorTime {
                try central.startScan(ScanRequest(services: [testService]))
                time.advance(by: .milliseconds(20))
                central.stopScan()
            }
            #expect(owner.journal.count("discovered") == 1)
            let connected = Mutex<(any PeripheralConnection)?>(nil)
            let connecting = Task {
                let connection = try await central.connect(
                    to: adapter.identifier(of: server), events: ConnectionOwner())
                connected.withLock { $0 = connection }
            }
            // The step that connects. On a busy machine there are many beside it in which nothing happens.
            var longest = 0.0
            while connected.withLock({ $0 == nil }) {
                longest = max(longest, Self.processorTime { time.advance(by: .milliseconds(10)) })
                await Task.yield()
            }
            spent += longest
            try await connecting.value
            kept.append(central)
            if let connection = connected.withLock({ $0 }) { kept.append(connection) }
        }
        return spent
    }

    private static func processorTime(_ body: () throws -> Void) rethrows -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        let start = now()
        try body()
        return now() - start
    }

    @Test(.timeLimit(.minutes(5))) func itGrowsWithTheirNumber() async throws {
        // What a machine does in the middle of a measurement tells nothing, so that one of some is enough.
        var told = ""
        for _ in 0..<4 {
            let few = try await setUp(250)
            let many = try await setUp(1000)
            // Four times as long, and more for colder caches; sixteen times where each looks at all others.
            if many < few * 8 { return }
            told += "250 connections take \(few) s of processor time, 1000 take \(many) s; "
        }
        Issue.record("\(told)")
    }
}
