import BluetoothHost

enum Direction: String, CaseIterable { case send = "send   ", receive = "receive" }

/// A host with a controller that answers every command and completes every packet at once.
struct Sink: ~Copyable {
    /// Buffers that the controller says it has, of 251 bytes.
    private static let buffers = 16
    private static let handle: [UInt8] = [0x40, 0x00]

    private var host = LEHost(HostConfiguration(address: .staticRandom(1)))
    private var batch = EventBatch()
    private var output: [UInt8] = []
    private var now: Int64 = 0
    private var characteristic: UInt16 = 0
    private let value: [UInt8]
    /// Packets of data that the host has sent and not been told of.
    private var held = 0

    init(length: Int) {
        value = [UInt8](repeating: 0x55, count: length)
        host.start(at: now)
        drain()
        let service = ServiceSpecification(
            UUID(short: 0x180F),
            characteristics: [CharacteristicSpecification(UUID(short: 0x2A19), properties: 0x10, access: [])])
        characteristic = host.addService(service, at: now)?.characteristics.first ?? 0
        // Connected as peripheral, ATT_MTU 517 asked for, and subscribed.
        feed([0x04, 0x3E, 19, 0x01, 0] + Self.handle + [1, 1, 1, 2, 3, 4, 5, 0xC0, 24, 0, 0, 0, 0xF4, 1, 0])
        feedATT([0x02, 0x05, 0x02])
        let configuration = characteristic + 1
        feedATT([0x12, UInt8(configuration & 0xFF), UInt8(configuration >> 8), 1, 0])
    }

    /// Sends values; returns how many were taken and left.
    mutating func send(_ count: Int) -> Int {
        var sent = 0
        let value = value
        while sent < count {
            let before = sent
            while sent < count, host.updateValue(value.span.bytes, of: characteristic, at: now) { sent += 1 }
            drain()
            if sent == before { return sent }
        }
        return sent
    }

    /// Hands over notifications of a peer; returns how many came out as events.
    mutating func receive(_ count: Int) -> Int {
        let packet = Self.data([0x1B, 0x30, 0x00] + value)
        var received = 0
        var given = 0
        while given < count {
            for _ in 0..<min(64, count - given) {
                host.receive(packet.span.bytes, at: now)
                given += 1
            }
            host.swapEvents(&batch)
            for case .valueReceived(_, _, let bytes) in batch.events {
                batch.withBytes(bytes) { received += $0.byteCount == value.count ? 1 : 0 }
            }
        }
        return received
    }

    /// Sends one value, and hands over the packets that carry it. Returns whether it was taken.
    mutating func send(_ value: RawSpan, _ handOver: (RawSpan) -> Void) -> Bool {
        guard host.updateValue(value, of: characteristic, at: now) else { return false }
        drain(handOver)
        return true
    }

    /// Takes a packet of another host, and hands over the values that came with it.
    mutating func receive(_ packet: RawSpan, _ handOver: (RawSpan) -> Void) {
        host.receive(packet, at: now)
        host.swapEvents(&batch)
        for case .valueReceived(_, _, let bytes) in batch.events { batch.withBytes(bytes, handOver) }
    }

    private static func data(_ pdu: [UInt8]) -> [UInt8] {
        let count = pdu.count
        return [0x02] + handle + [UInt8((count + 4) & 0xFF), UInt8((count + 4) >> 8)]
            + [UInt8(count & 0xFF), UInt8(count >> 8), 0x04, 0x00] + pdu
    }

    private mutating func feedATT(_ pdu: [UInt8]) { feed(Self.data(pdu)) }

    private mutating func feed(_ packet: [UInt8]) {
        host.receive(packet.span.bytes, at: now)
        drain()
    }

    /// Takes what the host sends and answers it, until it has nothing more. Hands its data over.
    private mutating func drain(_ handOver: (RawSpan) -> Void = { _ in }) {
        var isMoving = true
        while isMoving {
            isMoving = false
            output.removeAll(keepingCapacity: true)
            var commands: [UInt16] = []
            var start = 0
            while host.nextPacket(into: &output, at: now) {
                if output[start] == 0x01 {
                    commands.append(UInt16(output[start + 1]) | UInt16(output[start + 2]) << 8)
                } else {
                    held += 1
                    handOver(output.span.bytes.extracting(start..<output.count))
                }
                start = output.count
                isMoving = true
            }
            if held > 0 {
                let completed: [UInt8] = [0x04, 0x13, 5, 1] + Self.handle + [UInt8(held), 0]
                held = 0
                host.receive(completed.span.bytes, at: now)
            }
            for command in commands { answer(command) }
            host.swapEvents(&batch)
        }
    }

    private mutating func answer(_ opcode: UInt16) {
        var result = [UInt8](repeating: 0, count: 65)
        if opcode == 0x2002 { result[1...3] = [251, 0, UInt8(Self.buffers)] }
        let header: [UInt8] = [0x04, 0x0E, UInt8(3 + result.count), 1, UInt8(opcode & 0xFF), UInt8(opcode >> 8)]
        let packet = header + result
        host.receive(packet.span.bytes, at: now)
    }
}
