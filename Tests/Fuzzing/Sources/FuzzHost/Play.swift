import BluetoothHost

/// An LE host with a controller and a peer made of arbitrary bytes, under libFuzzer. Nothing may trap, the host must come to
/// rest after each step, and what it holds is bounded by libFuzzer's limit on memory.
struct Play: ~Copyable {
    private static let handle: [UInt8] = [0x40, 0x00]
    private static let peer: [UInt8] = [1, 2, 3, 4, 5, 0xC0]

    private var host: LEHost
    private var batch = EventBatch()
    private var output: [UInt8] = []
    private var now: Int64 = 1
    private let isCentral: Bool
    private var connections: [ConnectionID] = []
    /// Connections that are up.
    private var open = 0
    private var requests: [ServerRequestID] = []
    private var channels: [CreditChannelID] = []
    private var characteristic: UInt16 = 0
    /// The last one.
    private var question: (id: PairingQuestionID, asked: PairingQuestion)?

    /// What happens in one step; in an input a step is its kind, a count and so many bytes.
    enum Step: CaseIterable {
        /// A PDU of the peer's, whole.
        case att, signalling, securityManager, channel
        /// An HCI event: its code, then its parameters.
        case event
        /// An ACL packet: flags, then its bytes, in L2CAP's pieces.
        case acl
        /// Time passes, in units of 100 ms.
        case time
        /// The application does something.
        case application
    }

    init(isCentral: Bool) {
        self.isCentral = isCentral
        var configuration = HostConfiguration(address: .staticRandom(1))
        configuration.pairing = PairingOptions(cryptography: Toy())
        configuration.privacy = PrivacyOptions(resolvingKey: .init(repeating: 5, count: 16))
        configuration.privacy?.rotation = 3_000_000_000
        configuration.usesEnhancedBearers = true
        host = LEHost(configuration)
        host.start(at: now)
        rest()
        let service = ServiceSpecification(
            UUID(short: 0x180F),
            characteristics: [
                CharacteristicSpecification(
                    UUID(short: 0x2A19), properties: 0x3E, access: [.read, .write, .writeCommand]),
                CharacteristicSpecification(UUID(short: 0x2A1A), properties: 0x02, access: [.read, .readEncrypted]),
            ])
        characteristic = host.addService(service, at: now)?.characteristics.first ?? 0
        _ = host.listen(psm: 0x80)
        connect()
    }

    private mutating func connect() {
        if isCentral { _ = host.connect(to: .staticRandom(0xC005_0403_0201), at: now) }
        rest()
        feed(
            [0x04, 0x3E, 19, 0x01, 0] + Self.handle + [isCentral ? 0 : 1, 1] + Self.peer + [24, 0, 0, 0, 0xF4, 1, 0])
        if isCentral {
            host.scan(true, at: now)
            rest()
        }
    }

    /// Makes the host ready for another input with a connection of its own, which costs less than a new host; false when an
    /// input has left it in another state.
    mutating func begin() -> Bool {
        feed([0x04, 0x05, 4, 0] + Self.handle + [0x13])
        guard case .ready = host.state, open == 0 else { return false }
        connections = []
        requests = []
        channels = []
        connect()
        return open == 1
    }

    mutating func stream(_ input: UnsafeRawBufferPointer) {
        var splitter = H4Splitter()
        var start = 0
        while start < input.count {
            let count = min(1 + Int(input[start] % 40), input.count - start)
            let piece = UnsafeRawBufferPointer(rebasing: input[start..<start + count])
            start += count
            var packets: [[UInt8]] = []
            do throws(H4StreamError) {
                try splitter.feed(RawSpan(_unsafeBytes: piece)) { _, packet in
                    packets.append(packet.withUnsafeBytes { Array($0) })
                }
            } catch { return }
            for packet in packets { feed(packet) }
        }
    }

    /// Takes the input's steps, which are of these kinds only.
    mutating func steps(_ input: UnsafeRawBufferPointer, of kinds: [Step]) {
        var start = 0
        while start + 2 <= input.count {
            let (kind, count) = (input[start], min(Int(input[start + 1]), input.count - start - 2))
            let bytes = Array(input[start + 2..<start + 2 + count])
            start += 2 + count
            switch kinds[Int(kind) % kinds.count] {
            case .att: frame(0x04, bytes)
            case .signalling: frame(0x05, bytes)
            case .securityManager: frame(0x06, bytes)
            case .channel: frame(0x40, bytes)
            case .event:
                guard let code = bytes.first else { continue }
                feed([0x04, code, UInt8(bytes.count - 1)] + bytes.dropFirst())
            case .acl:
                guard let flags = bytes.first else { continue }
                feed([0x02, 0x40, flags & 0x30, UInt8(bytes.count - 1), 0] + bytes.dropFirst())
            case .time:
                now += Int64(count + 1) * 100_000_000
                if let deadline = host.deadline, deadline <= now { host.wake(at: now) }
                rest()
            case .application: act(bytes)
            }
        }
    }

    private mutating func frame(_ channel: UInt8, _ pdu: [UInt8]) {
        let count = pdu.count
        feed(
            [0x02] + Self.handle + [UInt8((count + 4) & 0xFF), UInt8((count + 4) >> 8)]
                + [UInt8(count & 0xFF), UInt8(count >> 8), channel, 0x00] + pdu)
    }

    /// What an application may do, told by the first byte.
    private mutating func act(_ bytes: [UInt8]) {
        guard let first = bytes.first, let id = connections.last else { return }
        let rest = Array(bytes.dropFirst())
        let handle = UInt16(rest.first ?? 1)
        if first >= 0xF0 { return changeBonds(first, rest) }
        switch first % 12 {
        case 0: _ = host.request(.services(nil), of: id, at: now)
        case 1: _ = host.request(.characteristics(in: 1...0xFFFF), of: id, at: now)
        case 2: _ = host.request(.read(max(handle, 1)), of: id, at: now)
        case 3: _ = host.request(.write(max(handle, 1), rest), of: id, at: now)
        case 4: _ = host.request(.includedServices(in: 1...0xFFFF), of: id, at: now)
        case 5: _ = host.request(.configure(value: max(handle, 1), end: 0xFFFF, bits: 1), of: id, at: now)
        case 6: _ = host.updateValue(rest.span.bytes, of: characteristic, at: now)
        case 7: if let request = requests.popLast() { host.respond(to: request, with: .success(rest), at: now) }
        case 8: _ = host.openChannel(id, psm: 0x80, at: now)
        case 9: if let channel = channels.last { _ = host.trySend(rest.span.bytes, on: channel) }
        case 10: _ = host.secure(id, at: now)
        default:
            guard let question else { return }
            let answer: PairingAnswer =
                switch question.asked {
                case .allow: .allow(first & 0x10 == 0)
                case .compare: .confirm(true)
                case .enterPasskey, .show: .passkey(UInt32(handle))
                }
            host.answerPairing(question.id, answer, at: now)
        }
        self.rest()
    }

    /// What an application does with keys and with whom it pairs.
    private mutating func changeBonds(_ first: UInt8, _ bytes: [UInt8]) {
        let peer = Address(bytes.prefix(6).reduce(0) { $0 << 8 | UInt64($1) }, .random)
        let identity = Address.staticRandom(0xC005_0403_0201)
        switch first & 0x7 {
        case 0:
            let bond = Bond(
                peer: first & 8 == 0 ? identity : peer, identity: identity, longTermKey: .init(repeating: 7, count: 16),
                diversifier: 0, random: 0, identityResolvingKey: .init(repeating: 9, count: 16), isAuthenticated: false,
                isSecureConnections: true, peerIsCentral: isCentral)
            host.setBonds([bond])
        case 1: host.setBonds([])
        case 2: host.forget(peer)
        case 3: host.isPairable.toggle()
        case 4: _ = host.connect(to: first & 8 == 0 ? identity : peer, at: now)
        case 5: host.cancelConnection(to: first & 8 == 0 ? identity : peer, at: now)
        case 6 where first & 8 == 0: host.setKnownPeers(host.knownPeers)
        case 6:
            _ = host.makeOutOfBandData()
            let sixteen = [UInt8](repeating: bytes.first ?? 0, count: 16)
            _ = host.useOutOfBandData(
                OutOfBandData(address: .staticRandom(0xC005_0403_0201), confirm: sixteen, random: sixteen))
        default: host.scan(first & 8 == 0, peers: [peer], at: now)
        }
        rest()
    }

    private mutating func feed(_ packet: [UInt8]) {
        host.receive(packet.span.bytes, at: now)
        rest()
    }

    /// Takes what the host sends, answers commands, and completes packets, until it has nothing more.
    private mutating func rest() {
        var rounds = 0
        var isMoving = true
        while isMoving {
            rounds += 1
            precondition(rounds < 10_000, "the host never comes to rest")
            isMoving = false
            output.removeAll(keepingCapacity: true)
            var answers: [[UInt8]] = []
            var start = 0
            while host.nextPacket(into: &output, at: now) {
                isMoving = true
                if output[start] == 0x01 {
                    answers.append(Self.answer(UInt16(output[start + 1]) | UInt16(output[start + 2]) << 8))
                } else {
                    answers.append([0x04, 0x13, 5, 1] + Self.handle + [1, 0])
                }
                start = output.count
            }
            for answer in answers { host.receive(answer.span.bytes, at: now) }
            host.swapEvents(&batch)
            for event in batch.events {
                switch event {
                case .connected(let id, _, _):
                    connections = connections.suffix(3) + [id]
                    open += 1
                case .disconnected: open -= 1
                case .pairingQuestion(let id, _, let asked): question = (id, asked)
                case .readRequest(let request, _, _, _), .writeRequest(let request, _, _):
                    requests = requests.suffix(7) + [request]
                case .channelOpened(let channel, _, _, _): channels = channels.suffix(7) + [channel]
                default: break
                }
            }
        }
    }

    private static func answer(_ opcode: UInt16) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 65)
        switch opcode {
        case 0x1002:
            result[1 + 28] = 0b111  // encryption
            (result[1 + 34], result[1 + 35], result[1 + 39]) = (0b110_1000, 0b10, 0b100)  // the resolving list
        case 0x202A: result[1] = 4
        case 0x2002: result[1...3] = [27, 0, 4]
        case 0x2003: result[1] = 1
        default: break
        }
        return [0x04, 0x0E, UInt8(3 + result.count), 1, UInt8(opcode & 0xFF), UInt8(opcode >> 8)] + result
    }
}

/// Quick, and the same on every run; it protects nothing.
private struct Toy: PairingCryptography {
    func aes128(key: [UInt8], block: [UInt8]) -> [UInt8] { aesCMAC(key: key, message: block) }
    func aesCMAC(key: [UInt8], message: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 16)
        for (place, byte) in (key + message).enumerated() { result[place % 16] = result[place % 16] &* 31 ^ byte }
        return result
    }
    func random(_ count: Int) -> [UInt8] { [UInt8](repeating: 7, count: count) }
    func makeKeyPair() -> PairingKeyPair {
        PairingKeyPair(secret: random(32), x: random(32), y: random(32))
    }
    func sharedSecret(_ keys: PairingKeyPair, x: [UInt8], y: [UInt8]) -> [UInt8]? { y.first == 7 ? x : nil }
}
