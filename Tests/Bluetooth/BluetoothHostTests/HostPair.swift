import Testing
import VirtualControllers

@testable import BluetoothHost

/// Two hosts on two virtual controllers, with a clock that the test moves.
struct HostPair: ~Copyable {
    static let peripheral = 0
    static let central = 1
    static let service = BluetoothHost.UUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
    static let characteristic = BluetoothHost.UUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)

    /// Needs an encrypted link.
    static let secret = BluetoothHost.UUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7275 as UInt128)

    var controllers = VirtualControllers()
    var now: Int64 = 1_000
    private var peripheralHost: LEHost
    private var centralHost: LEHost
    private var up: [[ConnectionID]] = [[], []]
    /// Everything that has happened on each side.
    var log: [[HostEvent]] = [[], []]
    /// Bytes that came with values, write commands and SDUs, on each side.
    var received: [[[UInt8]]] = [[], []]
    /// The LE meta event that reaches no host (Core Specification 5.4, Vol 4, Part E, 7.7.65); nil for none.
    var lostMetaEvent: UInt8?

    init(
        _ options: VirtualControllers.Options = .init(), mtus: (Int, Int) = (517, 517), maximumQueuedBytes: Int = 8192,
        hasCryptography: Bool = true, configure: (Int, inout HostConfiguration) -> Void = { _, _ in }
    ) {
        var first = HostConfiguration(address: .staticRandom(0xF1F1_F1F1_F1F1))
        var second = HostConfiguration(address: .staticRandom(0xF0F0_F0F0_F0F0))
        (first.maximumMTU, second.maximumMTU) = mtus
        (first.maximumQueuedBytes, second.maximumQueuedBytes) = (maximumQueuedBytes, maximumQueuedBytes)
        if hasCryptography {
            first.pairing = PairingOptions(cryptography: ToyCryptography(seed: 1))
            second.pairing = PairingOptions(cryptography: ToyCryptography(seed: 2))
        }
        configure(Self.peripheral, &first)
        configure(Self.central, &second)
        peripheralHost = LEHost(first)
        centralHost = LEHost(second)
        controllers.sides[0].options = options
        controllers.sides[1].options = options
    }

    mutating func host<R>(_ side: Int, _ body: (inout LEHost, Int64) throws -> R) rethrows -> R {
        side == 0 ? try body(&peripheralHost, now) : try body(&centralHost, now)
    }

    private func isLost(_ packet: [UInt8]) -> Bool {
        packet.count > 3 && packet.starts(with: [0x04, 0x3E]) && packet[3] == lostMetaEvent
    }

    /// Carries packets until nothing moves any more.
    mutating func settle() {
        var isMoving = true
        var rounds = 0
        while isMoving {
            rounds += 1
            if rounds > 100_000 {
                Issue.record("the hosts never come to rest")
                return
            }
            isMoving = false
            for side in 0...1 {
                var packet: [UInt8] = []
                while host(side, { $0.nextPacket(into: &packet, at: $1) }) {
                    controllers.receive(packet, from: side)
                    packet = []
                    isMoving = true
                }
                let packets = controllers.toHost[side]
                controllers.toHost[side] = []
                for packet in packets where !isLost(packet) { host(side) { $0.receive(packet.span.bytes, at: $1) } }
                isMoving = isMoving || !packets.isEmpty
                collect(side)
            }
        }
    }

    private mutating func collect(_ side: Int) {
        var batch = EventBatch()
        host(side) { host, _ in host.swapEvents(&batch) }
        for event in batch.events {
            log[side].append(event)
            switch event {
            case .valueReceived(_, _, let bytes), .writeCommand(_, _, let bytes), .channelReceived(_, let bytes):
                received[side].append(batch.withBytes(bytes) { [UInt8](copying: $0) })
            case .connected(let id, _, _): up[side].append(id)
            case .disconnected(let id, _): up[side].removeAll { $0 == id }
            default: break
            }
        }
    }

    /// Lets time pass and whatever is due happen.
    mutating func advance(seconds: Double) {
        let end = now + Int64(seconds * 1e9)
        while true {
            let deadlines = [host(0) { host, _ in host.deadline }, host(1) { host, _ in host.deadline }]
            let next = deadlines.compactMap { $0 }.min() ?? .max
            guard next <= end else { break }
            now = max(now, next)
            for side in 0...1 where (deadlines[side] ?? .max) <= now { host(side) { $0.wake(at: $1) } }
            settle()
        }
        now = end
    }

    mutating func start() {
        for side in 0...1 { host(side) { $0.start(at: $1) } }
        settle()
    }

    /// Publishes a service with one characteristic for everything, and connects. Returns its handles.
    mutating func connect(value: [UInt8]? = nil) throws -> ServiceHandles {
        start()
        let specification = ServiceSpecification(
            Self.service,
            characteristics: [
                CharacteristicSpecification(
                    Self.characteristic, properties: value == nil ? 0x3E : 0x02,
                    access: value == nil ? [.read, .write, .writeCommand] : .read, value: value),
                CharacteristicSpecification(
                    Self.secret, properties: 0x02, access: [.read, .readEncrypted], value: [1, 2, 3]),
            ])
        let handles = try #require(host(0) { $0.addService(specification, at: $1) })
        let payload = AdvertisingPayload(data: [2, 1, 6, 17, 7] + Self.service.bytes + [5, 9] + Array("card".utf8))
        #expect(host(0) { $0.advertise(payload, at: $1) })
        settle()
        let address = host(0) { host, _ in host.address }
        #expect(host(1) { $0.connect(to: address, at: $1) })
        settle()
        #expect(peers(0).count == 1)
        #expect(peers(1).count == 1)
        return handles
    }

    /// Ends the connection from the central's side.
    mutating func disconnect() throws {
        let id = try connection(1)
        host(1) { $0.disconnect(id, at: $1) }
        settle()
        #expect(peers(0).isEmpty)
        #expect(peers(1).isEmpty)
    }

    /// Ends the connection, if there is one, and makes another.
    mutating func reconnect() throws {
        if !peers(1).isEmpty { try disconnect() }
        #expect(host(1) { $0.connect(to: .staticRandom(0xF1F1_F1F1_F1F1), at: $1) })
        settle()
        #expect(peers(1).count == 1)
    }

    /// Connections that are up, in order.
    func peers(_ side: Int) -> [ConnectionID] { up[side] }

    func connection(_ side: Int) throws -> ConnectionID { try #require(peers(side).last) }

    /// Carries out a client's request and returns what came of it.
    mutating func ask(_ request: ClientRequest) throws -> Result<ClientResult, ClientFailure> {
        let id = try connection(1)
        let operation = try #require(host(1) { $0.request(request, of: id, at: $1) })
        settle()
        return try result(of: operation)
    }

    func result(of operation: OperationID) throws -> Result<ClientResult, ClientFailure> {
        for case .completed(operation, _, let result) in log[1] { return result }
        throw Missing(what: "a result of \(operation)")
    }

    struct Missing: Error { let what: String }
}
