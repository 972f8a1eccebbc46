#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// What both sides of the interop tests know; `Tests/Interop/peer.py` has the same.
    enum Layout {
        static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
        static let characteristic = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)
        /// Needs an encrypted link.
        static let secret = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7275 as UInt128)
        static let secretText = "9D534E8B-2153-4F6D-B2B0-8C68665A7275"

        static func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }
    }

    extension Journal {
        /// Waits until so many connections have ended, by the log.
        func waitForEnds(_ count: Int) async throws {
            try await wait(for: "\(count) ends") { $0.count { $0.contains("has ended") } >= count }
        }
    }

    /// Ferry as peripheral: one characteristic for everything, one that needs an encrypted link, and a channel that echoes.
    final class Server: PeripheralRoleEvents, Sendable {
        let journal = Journal()
        var psm: PSM? { state.withLock { $0.psm } }
        private let state = Mutex(State())

        private struct State {
            var role: (any PeripheralRole)?
            var ids: [AttributeID] = []
            var psm: PSM?
            var value = Layout.pattern(400)
            /// Bytes of one value, at most.
            var valueLimit = Int.max
            /// Bytes of the pattern that each subscriber has been sent.
            var sent: [ConnectedCentral: Int] = [:]
            var echoes: [Echo] = []
        }

        /// Bytes that every subscriber is sent.
        static let total = 600

        static func open(
            _ channel: HCIChannel, name: String? = nil, _ change: (inout HCIConfiguration) -> Void = { _ in }
        ) async throws -> (HCIAdapter, Server) {
            var configuration = HCIConfiguration()
            configuration.capture = Interop.capture("server")
            change(&configuration)
            let server = Server()
            configuration.log = { [journal = server.journal] in journal.add("log \($0)") }
            let adapter = try await HCIAdapter.open(channel, configuration)
            let role = adapter.openPeripheral(server)
            let published = try await role.publish(
                ServiceDefinition(
                    Layout.service,
                    characteristics: [
                        CharacteristicDefinition(
                            Layout.characteristic,
                            properties: [.read, .write, .writeWithoutResponse, .notify, .indicate],
                            permissions: [.readable, .writeable]),
                        CharacteristicDefinition(
                            Layout.secret, properties: .read, permissions: .readEncryptionRequired),
                    ]))
            let psm = try await role.publishL2CAPChannel(encryptionRequired: false)
            server.state.withLock { state in
                state.psm = psm
                state.role = role
                state.ids = published.characteristics
            }
            _ = try await role.startAdvertising(Advertisement(localName: name, services: [Layout.service]))
            return (adapter, server)
        }

        func close() { state.withLock { $0.role.take() }?.close() }

        /// Cuts what subscribers are sent smaller than their connections ask for.
        func limitValues(to count: Int) { state.withLock { $0.valueLimit = count } }

        /// Publishes another service.
        func publish(_ service: ServiceDefinition) async throws -> PublishedService {
            let role = try #require(state.withLock { $0.role })
            return try await role.publish(service)
        }

        /// A channel that only encrypted links can open.
        func publishSecureChannel() async throws -> PSM {
            let role = try #require(state.withLock { $0.role })
            return try await role.publishL2CAPChannel(encryptionRequired: true)
        }

        // MARK: Events

        func peripheralAdapterDidChange(_ state: AdapterState) { journal.add("state \(state)") }

        func central(
            _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
        ) {
            state.withLock { $0.sent[central] = 0 }
            journal.add("subscribed \(subscription)")
            send()
        }

        func peripheralIsReadyToUpdate() { send() }

        /// Sends to each subscriber as much as is taken, in the largest values its connection carries.
        private func send() {
            state.withLock { state in
                guard let role = state.role, let id = state.ids.first else { return }
                for (central, sent) in state.sent {
                    var sent = sent
                    while sent < Self.total, let length = role.maximumUpdateValueLength(for: central) {
                        let value = Array(
                            Layout.pattern(Self.total)[sent..<min(Self.total, sent + min(length, state.valueLimit))])
                        guard (try? role.tryUpdateValue(value.span.bytes, of: id, for: .one(central))) == true else {
                            break
                        }
                        sent += value.count
                    }
                    state.sent[central] = sent
                }
            }
        }

        func peripheralDidReceive(_ request: ReadRequest) {
            let (role, value) = state.withLock { state in
                (state.role, request.characteristic == state.ids.first ? state.value : Layout.pattern(30))
            }
            guard request.offset <= value.count else {
                role?.respond(to: request.id, with: .failure(.invalidOffset))
                return
            }
            role?.respond(to: request.id, with: .success(Array(value[request.offset...])))
        }

        func peripheralDidReceive(_ request: WriteRequest) {
            let role = state.withLock { state in
                for part in request.parts {
                    if part.offset == 0 { state.value = [] }
                    state.value.removeLast(max(0, state.value.count - part.offset))
                    state.value += part.value
                }
                return state.role
            }
            journal.add("wrote \(request.parts.map(\.value.count).reduce(0, +)) bytes")
            role?.respond(to: request.id, with: .success([]))
        }

        func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
            journal.add("command \(value.withUnsafeBytes { Array($0) } == Layout.pattern(value.byteCount))")
        }

        func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
            state.withLock { $0.sent[central] = nil }
            journal.add("unsubscribed")
        }

        func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
            journal.add("disconnected \(reason.code)")
        }

        func peripheralDidOpen(_ channel: any L2CAPChannel) {
            let echo = Echo(channel, journal)
            state.withLock { $0.echoes.append(echo) }
            channel.activate(echo)
        }
    }

    /// Sends back what comes, in the order it came, as the peer gives credits.
    final class Echo: LinkReceiver, Sendable {
        private let channel: any L2CAPChannel
        private let journal: Journal
        private let waiting = Mutex<[[UInt8]]>([])

        init(_ channel: any L2CAPChannel, _ journal: Journal) {
            self.channel = channel
            self.journal = journal
        }

        func linkDidReceive(_ chunk: RawSpan) {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            let size = channel.maximumChunkSize
            waiting.withLock { waiting in
                for start in stride(from: 0, to: bytes.count, by: size) {
                    waiting.append(Array(bytes[start..<min(start + size, bytes.count)]))
                }
            }
            linkIsReady()
        }

        func linkIsReady() {
            waiting.withLock { waiting in
                while let first = waiting.first, (try? channel.trySend(first.span.bytes)) == true {
                    waiting.removeFirst()
                }
            }
        }

        func linkDidClose(_ reason: FerryError) { journal.add("channel closed \(reason.code)") }
    }

    /// Ferry as central: what it finds on the one peripheral that offers the service.
    final class Client: CentralRoleEvents, PeripheralConnectionEvents, Sendable {
        let journal = Journal()
        let adapter: HCIAdapter
        private let found: AsyncStream<Discovery>
        private let finding: AsyncStream<Discovery>.Continuation
        private let received = Mutex<[UInt8]>([])
        private let held = Mutex<(any CentralRole)?>(nil)
        private let heard = Mutex<[Int]>([])

        /// How strongly peripherals were heard, in dBm.
        var signals: [Int] { heard.withLock { $0 } }

        init(_ adapter: HCIAdapter) {
            self.adapter = adapter
            (found, finding) = AsyncStream.makeStream()
        }

        static func open(
            _ channel: HCIChannel, _ change: (inout HCIConfiguration) -> Void = { _ in }
        ) async throws -> Client {
            var configuration = HCIConfiguration()
            configuration.capture = Interop.capture("client")
            change(&configuration)
            return Client(try await HCIAdapter.open(channel, configuration))
        }

        func centralAdapterDidChange(_ state: AdapterState) { journal.add("state \(state)") }
        func centralDidDiscover(_ discovery: Discovery) {
            heard.withLock { $0.append(discovery.rssi) }
            finding.yield(discovery)
        }
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
            let count = received.withLock { received in
                received += value.withUnsafeBytes { Array($0) }
                return received.count
            }
            if count >= Server.total { journal.add("collected") }
        }
        func peripheralDidDisconnect(_ reason: BluetoothError) { journal.add("disconnected \(reason.code)") }
        func peripheralDidModifyServices(_ services: [AttributeID]) { journal.add("modified") }

        /// Finds the peripheral and connects.
        func connect() async throws -> any PeripheralConnection {
            let role = held.withLock { held in
                let role = held ?? adapter.openCentral(self)
                held = role
                return role
            }
            try role.startScan(ScanRequest(services: [Layout.service], allowsDuplicates: true))
            defer { role.stopScan() }
            for await discovery in found {
                let connection = try await role.connect(to: discovery.peripheral, events: self)
                return connection
            }
            throw BluetoothError(.cancelled, "The test was cancelled.")
        }

        /// The two characteristics.
        func discover(_ connection: any PeripheralConnection) async throws -> (AttributeID, AttributeID) {
            let service = try #require(try await connection.discoverServices([Layout.service]).first)
            let all = try await connection.discoverCharacteristics(nil, of: service.id)
            return (
                try #require(all.first { $0.uuid == Layout.characteristic }).id,
                try #require(all.first { $0.uuid == Layout.secret }).id
            )
        }

        /// What a subscription brings until all has come.
        func collect(
            _ connection: any PeripheralConnection, _ id: AttributeID, _ kind: FerryBluetooth.Subscription
        ) async throws -> [UInt8] {
            received.withLock { $0 = [] }
            let before = journal.all.filter { $0 == "collected" }.count
            try await connection.setSubscription(kind, to: id)
            try await journal.wait(for: "collected", before + 1)
            try await connection.setSubscription(nil, to: id)
            return received.withLock { $0 }
        }

        /// A message there and back over a channel of `peer.py`'s, which sends back what comes.
        func exchange(_ connection: any PeripheralConnection) async throws {
            let channel = try await connection.openL2CAPChannel(PSM(rawValue: 0x80))
            #expect(channel.maximumChunkSize == 1000)
            let message = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let link = try MessageChannel(over: channel, codec: BytesCodec(), framing: LengthPrefixFraming())
            async let sent: Void = link.send(message)
            let received = try await link.messages.first { _ in true }
            #expect(received == message)
            try await sent
            link.close()
        }

        func close() { held.withLock { $0.take() }?.close() }
    }
#endif
