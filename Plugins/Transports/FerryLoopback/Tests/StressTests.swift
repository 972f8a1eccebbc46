import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// Many threads at one radio on the system's time. Under the thread sanitizer it also looks for races.
@Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct StressTests {
    /// Takes part in the exchange until it has heard what it waits for.
    private final class Listener: PeripheralConnectionEvents {
        let heard = Mutex<[UInt8]>([])
        let hasEnded = Atomic(false)
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
            heard.withLock { $0.append(bytes(value)[0]) }
        }
        func peripheralDidDisconnect(_ reason: BluetoothError) { hasEnded.store(true, ordering: .relaxed) }
    }

    @Test func centralsComeAndGoWhileOthersExchangeValues() async throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(1)
        let radio = try LoopbackRadio(configuration: configuration)
        let server = radio.makeAdapter()
        let owner = PeripheralOwner()
        let peripheral = server.openPeripheral(owner)
        let service = try await peripheral.publish(World.definition())
        let characteristic = service.characteristics[0]
        _ = try await peripheral.startAdvertising(Advertisement(services: [testService]))
        owner.actions.withLock { $0.onWriteRequest = { peripheral.respond(to: $0.id, with: .success([])) } }

        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<6 {
                let adapter = radio.makeAdapter()
                group.addTask {
                    for round in 0..<4 {
                        try await Self.visit(
                            adapter, server, owner, peripheral, characteristic, disconnects: (index + round) % 2 == 0)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(owner.journal.count("subscribed") == 24)
        try await until("24 disconnections") { owner.journal.count("disconnected") == 24 }
        let refused = owner.journal.all.filter { $0.hasPrefix("disconnected") }
        #expect(
            refused.allSatisfy { ["disconnected disconnectedByPeer", "disconnected disconnectedLocally"].contains($0) })
    }

    /// One connection: 200 numbered values down, as many writes up, a pause in between, and the end from either side.
    private static func visit(
        _ adapter: LoopbackAdapter, _ server: LoopbackAdapter, _ owner: PeripheralOwner,
        _ peripheral: any PeripheralRole, _ characteristic: AttributeID, disconnects: Bool
    ) async throws {
        let central = adapter.openCentral(CentralOwner())
        defer { central.close() }
        let listener = Listener()
        let peer = server.identifier(of: adapter)
        let visits = owner.centrals.count { $0.peer == peer }
        let connection = try await central.connect(to: adapter.identifier(of: server), events: listener)
        try await connection.setSubscription(.notify, to: characteristic)
        try await until("the subscription") { owner.centrals.count { $0.peer == peer } > visits }
        let me = try #require(owner.centrals.last { $0.peer == peer })
        var sent = 0
        var written = 0
        while sent < 200 || written < 200 {
            if sent < 200,
                try peripheral.tryUpdateValue([UInt8(sent)].span.bytes, of: characteristic, for: .one(me))
            {
                sent += 1
            }
            if written < 200,
                try connection.tryWriteValue([UInt8(written)].span.bytes, to: characteristic, type: .withoutResponse)
            {
                written += 1
            }
            if sent == 100 { connection.setReceiving(written % 3 != 0) }
            if sent > 100 || written == 200 { connection.setReceiving(true) }
            try Task.checkCancellation()
            await Task.yield()
        }
        try await connection.writeValue([1], to: characteristic)
        try await until("200 values") { listener.heard.withLock { $0.count } == 200 }
        #expect(listener.heard.withLock { $0 } == (0..<200).map { UInt8($0) })
        if disconnects { connection.disconnect() } else { peripheral.disconnect(me) }
        try await until("the end") { listener.hasEnded.load(ordering: .relaxed) }
    }
}
