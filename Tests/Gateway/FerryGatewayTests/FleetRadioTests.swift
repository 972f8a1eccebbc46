#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import Foundation
    import GatewayRig
    import TestSupport
    import Testing

    /// Gateways of a fleet with all their parts, over the virtual radio.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(5)))
    struct FleetRadioTests {
        @Test func anotherGatewayGoesOnWithAPeersRecords() async throws {
            let air = try await FleetAir()
            let peer = air.peer
            func append(_ numbers: Range<Int>) async throws {
                for number in numbers { try await peer.append(Array("\(number)".utf8), to: "collector") }
            }
            try await append(0..<50)
            let one = try air.gateway("one")
            try await until("a lease") { !one.keeper.ownedPeers.isEmpty }
            let two = try air.gateway("two")
            try await peer.drained("collector", within: .unreached)
            await one.end()
            try await append(50..<100)
            try await peer.drained("collector", within: .unreached)
            #expect(two.keeper.status.begun >= 1)

            // What the first has not published yet is in its store, and comes when it is back.
            let again = try air.gateway("one")
            let connection = try await air.server.connect()
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var table: [String: Int] = [:], gateways: Set<String> = [], tokens = 0, sequences: [Int: Int] = [:]
            while table.count < 100 {
                for delivery in try await consumer.take(atMost: 100, within: .seconds(1)) {
                    try await consumer.acknowledge(delivery)
                    let message = delivery.message
                    let number = try #require(Int(String(decoding: message.bytes, as: UTF8.self)))
                    table[try #require(message["Nats-Msg-Id"])] = number
                    let sequence: Int? = message["Ferry-Sequence"].flatMap { Int($0) }
                    let place: Int = try #require(sequence)
                    sequences[number] = place
                    gateways.insert(try #require(message["Ferry-Gateway"]))
                    // Not each: a machine that stands for seconds loses leases, and no records.
                    if message["Ferry-Token"] != nil { tokens += 1 }
                }
            }
            // Each once by its name, and in order by its number in the stream, whoever has brought it.
            #expect(Set(table.values) == Set(0..<100) && gateways.contains("two") && tokens > 0)
            let ordered = sequences.sorted { $0.value < $1.value }.map(\.key)
            #expect(ordered == Array(0..<100))
            await again.end()
            await two.end()
            await air.end()
        }
    }
#endif
