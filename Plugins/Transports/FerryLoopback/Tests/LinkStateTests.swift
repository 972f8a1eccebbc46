import Ferry
import FerryBluetooth
import TestSupport
import Testing

@testable import FerryLoopback

/// Every state of a link with every event.
@Suite(.tags(.adapter)) struct LinkStateTests {
    typealias Codes = [BluetoothError.Code]
    static let lost = Ending(
        central: BluetoothError(.connectionTimeout, "lost"), peripheral: BluetoothError(.connectionTimeout, "lost"))

    /// Given a life; when the central asks for the end, the peripheral does, or the peer is lost; then the next life and
    /// whether the disconnection is sent, or the reasons of central and peripheral.
    static let lives:
        [(
            LinkLife, central: (LinkLife, Bool), peripheral: (LinkLife, Bool), lost: Codes?, requested: Codes?,
            over: [Bool]
        )] = [
            (
                .open, (.ending(by: .central), true), (.ending(by: .peripheral), true),
                [.connectionTimeout, .connectionTimeout], nil, [false, false]
            ),
            (
                .ending(by: .central), (.ending(by: .central), false), (.ending(by: .both), false),
                [.disconnectedLocally, .connectionTimeout], [.disconnectedLocally, .disconnectedByPeer], [true, false]
            ),
            (
                .ending(by: .peripheral), (.ending(by: .both), false), (.ending(by: .peripheral), false),
                [.connectionTimeout, .disconnectedLocally], [.disconnectedByPeer, .disconnectedLocally], [false, true]
            ),
            (
                .ending(by: .both), (.ending(by: .both), false), (.ending(by: .both), false),
                [.disconnectedLocally, .disconnectedLocally], [.disconnectedLocally, .disconnectedLocally],
                [true, true]
            ),
            (.ended, (.ended, false), (.ended, false), nil, nil, [true, true]),
        ]

    @Test func lifeOfALink() {
        for row in Self.lives {
            var life = row.0
            #expect(life.beginEnding(by: .up) == row.central.1, "\(row.0)")
            #expect(life == row.central.0, "\(row.0)")
            life = row.0
            #expect(life.beginEnding(by: .down) == row.peripheral.1, "\(row.0)")
            #expect(life == row.peripheral.0, "\(row.0)")
            life = row.0
            #expect(life.end(Self.lost).map { [$0.central.code, $0.peripheral.code] } == row.lost, "\(row.0)")
            #expect(life == .ended, "\(row.0)")
            #expect(row.0.requested.map { [$0.central.code, $0.peripheral.code] } == row.requested, "\(row.0)")
            #expect([row.0.isOver(for: .up), row.0.isOver(for: .down)] == row.over, "\(row.0)")
        }
    }

    /// Given a state; when an indication is queued, delivered, let through by the receiver, confirmed; then the next state,
    /// and whether a confirmation is sent or a place is free.
    @Test func openIndication() {
        let first = Timestamp.zero + .seconds(30)
        let later = Timestamp.zero + .seconds(60)
        let table:
            [(
                OpenIndication, queued: OpenIndication, delivered: OpenIndication, received: (OpenIndication, Bool),
                confirmed: (OpenIndication, Bool), blocks: Bool, deadline: Timestamp?
            )] = [
                (.none, .queued(deadline: later), .none, (.none, false), (.none, false), false, nil),
                (
                    .queued(deadline: first), .queued(deadline: first), .delivered(deadline: first),
                    (.queued(deadline: first), false), (.queued(deadline: first), false), false, first
                ),
                (
                    .delivered(deadline: first), .delivered(deadline: first), .delivered(deadline: first),
                    (.confirmed(deadline: first), true), (.delivered(deadline: first), false), true, first
                ),
                (
                    .confirmed(deadline: first), .confirmed(deadline: first), .confirmed(deadline: first),
                    (.confirmed(deadline: first), false), (.none, true), true, first
                ),
            ]
        for row in table {
            var state = row.0
            state.queue(until: later)
            #expect(state == row.queued, "\(row.0)")
            state = row.0
            state.deliver()
            #expect(state == row.delivered, "\(row.0)")
            state = row.0
            #expect(state.confirm() == row.received.1, "\(row.0)")
            #expect(state == row.received.0, "\(row.0)")
            state = row.0
            #expect(state.complete() == row.confirmed.1, "\(row.0)")
            #expect(state == row.confirmed.0, "\(row.0)")
            #expect(row.0.blocksValues == row.blocks && row.0.deadline == row.deadline, "\(row.0)")
        }
    }

    /// One entry of a lane.
    enum Queued {
        case value
        case pdu(PDU, during: UInt64 = 0)
    }

    /// Given the entries, oldest first, and the connection event; the next to go, to a receiver that takes values and to one that has
    /// paused.
    @Test func whatIsNextOnALane() {
        let write = PDU.request(.write(AttributeID(rawValue: 1), [1]))
        let table: [([Queued], event: UInt64?, taking: Lane.Choice, paused: Lane.Choice)] = [
            ([], nil, .nothing, .nothing),
            ([.value], nil, .value, .nothing),
            ([.pdu(.confirmation)], nil, .control, .control),
            ([.pdu(write)], nil, .control, .nothing),
            ([.pdu(.request(.execute))], nil, .control, .nothing),
            ([.pdu(.terminate)], nil, .control, .control),
            // In their order; a PDU without a value need not wait for one that the receiver leaves in the queue.
            ([.value, .pdu(.confirmation)], nil, .value, .control),
            ([.value, .pdu(.request(.exchangeMTU))], nil, .value, .control),
            ([.value, .pdu(write)], nil, .value, .nothing),
            ([.value, .pdu(.terminate)], nil, .value, .nothing),
            ([.pdu(.confirmation), .value], nil, .control, .control),
            ([.pdu(write), .value], nil, .control, .nothing),
            ([.pdu(.terminate), .value], nil, .control, .control),
            // A PDU that was queued in this event waits for the next.
            ([.pdu(.confirmation, during: 5)], 5, .nothing, .nothing),
            ([.pdu(.confirmation, during: 5)], 6, .control, .control),
            ([.pdu(.confirmation, during: 5), .value], 5, .nothing, .nothing),
            ([.value, .pdu(.confirmation, during: 5)], 5, .value, .nothing),
            ([.value, .pdu(.confirmation, during: 5)], 6, .value, .control),
        ]
        for (number, row) in table.enumerated() {
            let lane = Lane()
            let ring = ValueRing(capacity: 4, slotSize: 20)
            lane.ring = ring
            for queued in row.0 {
                switch queued {
                case .value:
                    ring.push(
                        UnsafeRawBufferPointer(start: nil, count: 0), length: 0, attribute: AttributeID(rawValue: 1),
                        order: lane.takeOrder(), isIndication: false)
                case .pdu(let pdu, let event): lane.append(pdu, during: event)
                }
            }
            #expect(lane.next(during: row.event, isBlocked: false) == row.taking, "row \(number)")
            #expect(lane.next(during: row.event, isBlocked: true) == row.paused, "row \(number)")
        }
    }

    /// ATT_MTU less 3, and an attribute's value has 512 bytes at most (Core Specification 5.4, Vol 3, Part F, 3.2.9).
    @Test(arguments: [(nil, 20), (23, 20), (185, 182), (515, 512), (517, 512)] as [(Int?, Int)])
    func longestValueOfALink(mtu: Int?, length: Int) {
        let link = AirLink(
            id: 1, central: 1, peripheral: 2, centralName: .random(), peripheralName: .random(), anchor: .zero)
        link.exchangedMTU = mtu
        #expect(link.maximumValueLength == length)
    }

    /// The peripheral ends a link that the central is ending already.
    @Test func peripheralThatEndedSendsNoMoreOnLinkThatCentralIsEnding() async throws {
        let world = try World { $0.connectionInterval = .milliseconds(30) }
        let service = try await world.publish()
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: service.characteristics[0]) }
        let central = try #require(world.peripheralOwner.centrals.first)
        let value = [1] as [UInt8]
        connection.disconnect()
        #expect(
            try world.peripheral.tryUpdateValue(value.span.bytes, of: service.characteristics[0], for: .one(central)))
        world.peripheral.disconnect(central)
        #expect(throws: BluetoothError.self) {
            try world.peripheral.tryUpdateValue(value.span.bytes, of: service.characteristics[0], for: .one(central))
        }
        world.time.advance(by: .seconds(1))
        #expect(owner.journal.all.last == "disconnected disconnectedLocally")
        #expect(world.peripheralOwner.journal.count("disconnected disconnectedLocally") == 1)
    }
}
