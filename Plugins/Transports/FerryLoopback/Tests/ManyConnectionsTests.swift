import Ferry
import FerryBluetooth
import FerryLoopback
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
            spent += try processorTime {
                try central.startScan(ScanRequest(services: [testService]))
                time.advance(by: .milliseconds(20))
                central.stopScan()
            }
            #expect(owner.journal.count("discovered") == 1)
            let connected = Mutex<(any PeripheralConnection)?>(nil)
            let tasks = SteppedTasks()
            let connect: @Sendable () async throws -> Void = {
                let connection = try await central.connect(
                    to: adapter.identifier(of: server), events: ConnectionOwner())
                connected.withLock { $0 = connection }
            }
            let connecting = tasks.run { Task { try await connect() } }
            for _ in 0..<100 where connected.withLock({ $0 == nil }) {
                tasks.run { while tasks.step() {} }
                spent += processorTime { tasks.run { time.advance(by: .milliseconds(10)) } }
                tasks.run { while tasks.step() {} }
            }
            try #require(connected.withLock { $0 != nil })
            try await connecting.value
            kept.append(central)
            if let connection = connected.withLock({ $0 }) { kept.append(connection) }
        }
        return spent
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
