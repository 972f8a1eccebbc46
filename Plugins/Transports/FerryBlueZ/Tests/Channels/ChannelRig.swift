#if BlueZ
    import Ferry
    @testable import FerryBlueZ
    import FerryBluetooth
    import Foundation
    import Glibc
    import Synchronization
    import TestSupport
    import Testing

    /// What comes through a link.
    final class Witness: LinkReceiver, Sendable {
        private struct State {
            var chunks: [[UInt8]] = []
            var reasons: [String] = []
            var onReady: (@Sendable () -> Void)?
            var onFirstChunk: (@Sendable () -> Void)?
        }

        private let state = Mutex(State())
        var chunks: [[UInt8]] { state.withLock { $0.chunks } }
        var reasons: [String] { state.withLock { $0.reasons } }
        var onReady: (@Sendable () -> Void)? {
            get { state.withLock { $0.onReady } }
            set { state.withLock { $0.onReady = newValue } }
        }

        /// Called with the first chunk, on the link's thread.
        var onFirstChunk: (@Sendable () -> Void)? {
            get { state.withLock { $0.onFirstChunk } }
            set { state.withLock { $0.onFirstChunk = newValue } }
        }

        func linkIsReady() { onReady?() }
        func linkDidReceive(_ chunk: RawSpan) {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            let onFirst = state.withLock { state in
                state.chunks.append(bytes)
                return state.onFirstChunk.take()
            }
            onFirst?()
        }
        func linkDidClose(_ reason: FerryError) { state.withLock { $0.reasons.append("\(reason.code)") } }
    }

    /// One connection between two adapters, and the channels that are opened over it.
    final class ChannelRig: PeripheralRoleEvents, CentralRoleEvents, PeripheralConnectionEvents, Sendable {
        static let service = BluetoothUUID(0x6E2A_0021_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128)
        /// Reads as ``secret``, when the link is encrypted.
        static let locked = BluetoothUUID(0x6E2A_0022_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128)
        static let secret: [UInt8] = [0x5E, 0xC4]

        private struct State {
            var discovered: PeerID?
            var channels: [any L2CAPChannel] = []
            var isOver = false
        }

        private struct Roles: Sendable {
            let peripheral: any PeripheralRole
            let central: any CentralRole
            let connection: any PeripheralConnection
        }

        private let state = Mutex(State())
        private let roles = Mutex<Roles?>(nil)

        var peripheral: any PeripheralRole { get throws { try #require(roles.withLock { $0 }).peripheral } }
        var connection: any PeripheralConnection { get throws { try #require(roles.withLock { $0 }).connection } }
        var isOver: Bool { state.withLock { $0.isOver } }

        func centralDidDiscover(_ discovery: Discovery) { state.withLock { $0.discovered = discovery.peripheral } }
        func peripheralDidOpen(_ channel: any L2CAPChannel) { state.withLock { $0.channels.append(channel) } }
        func peripheralDidDisconnect(_ reason: BluetoothError) { state.withLock { $0.isOver = true } }
        func peripheralDidReceive(_ request: ReadRequest) {
            let answer = Result<[UInt8], ATTError>.success(Array(Self.secret.dropFirst(request.offset)))
            roles.withLock { $0 }?.peripheral.respond(to: request.id, with: answer)
        }

        private actor Shared {
            private var rig: ChannelRig?

            func connected() async throws -> ChannelRig {
                if let rig, !rig.isOver { return rig }
                let (serving, asking) = try await Machine.adapters()
                rig?.close()
                let made = try await ChannelRig.connect(serving, asking)
                rig = made
                return made
            }

            func end() async throws {
                guard let rig = rig.take() else { return }
                try rig.connection.disconnect()
                try await until { rig.isOver }
                rig.close()
            }
        }

        private static let shared = Shared()
        /// The same connection for all tests of channels, as long as it lasts.
        static var connected: ChannelRig { get async throws { try await shared.connected() } }

        /// Ends it, for those who need the two adapters.
        static func end() async throws { try await shared.end() }

        static func connect(_ serving: BlueZAdapter, _ asking: BlueZAdapter) async throws -> ChannelRig {
            let rig = ChannelRig()
            let peripheral = serving.openPeripheral(rig)
            let characteristic = CharacteristicDefinition(
                locked, properties: .read, permissions: .readEncryptionRequired)
            _ = try await peripheral.publish(ServiceDefinition(service, characteristics: [characteristic]))
            _ = try await peripheral.startAdvertising(Advertisement(localName: nil, services: [service]))
            let central = asking.openCentral(rig)
            try central.startScan(ScanRequest(services: [service]))
            let peer = try await rig.wait("the peripheral to be heard") { $0.discovered }
            central.stopScan()
            let connection = try await central.connect(to: peer, events: rig)
            peripheral.stopAdvertising()
            rig.roles.withLock { $0 = Roles(peripheral: peripheral, central: central, connection: connection) }
            return rig
        }

        func close() {
            guard let roles = roles.withLock({ $0 }) else { return }
            roles.central.close()
            roles.peripheral.close()
        }

        private func wait<Value: Sendable>(
            _ what: String, _ find: @Sendable (inout State) -> Value?
        ) async throws -> Value {
            var found: Value?
            try await until(what) {
                found = state.withLock { find(&$0) }
                return found != nil
            }
            return try #require(found)
        }

        /// The peripheral's end of a channel that a central has opened.
        func accepted() async throws -> any L2CAPChannel {
            try await wait("the channel") { $0.channels.isEmpty ? nil : $0.channels.removeFirst() }
        }

        /// Two ends of a new channel: the central's and the peripheral's.
        func open(_ psm: PSM) async throws -> (any L2CAPChannel, any L2CAPChannel) {
            let near = try await connection.openL2CAPChannel(psm)
            return (near, try await accepted())
        }

        /// An adapter's address as text.
        static func address(of adapter: BlueZAdapter) async throws -> String {
            let object = await adapter.engine.adapterObject
            return try #require(object?["Address"]?.text)
        }
    }

    extension BlueZEngine {
        fileprivate var adapterObject: ObjectTree.Properties? {
            adapterPath.flatMap { objects[$0, "org.bluez.Adapter1"] }
        }
    }

    /// BlueZ's own tester of L2CAP sockets (l2test(1)), with what it says.
    final class SocketTester: Sendable {
        private let process: ChildProcess
        private let text = Mutex("")
        var output: String { text.withLock { $0 } }

        init(_ arguments: String...) throws {
            let pipe = Pipe()
            process = try ChildProcess(
                "/usr/sbin/chroot", ["/guest", "/usr/bin/l2test", "-V", "le_public"] + arguments, output: .pipe(pipe),
                errors: .pipe(pipe))
            pipe.readOnThread { [self] news in text.withLock { $0 += String(decoding: news, as: UTF8.self) } }
        }

        var hasEnded: Bool { !process.isRunning }

        func stop() { process.signal(SIGKILL) }
    }
#endif
