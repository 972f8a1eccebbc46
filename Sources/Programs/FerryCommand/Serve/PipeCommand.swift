import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import Foundation
import Synchronization

/// `ferry pipe`: standard input and output over an L2CAP channel.
struct PipeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pipe",
        abstract: "Joins standard input and output to another device's, over an L2CAP channel.",
        discussion: """
            ferry pipe --transport bluez --listen --name Cellar > log        # on one machine
            journalctl -f | ferry pipe --transport bluez Cellar              # on the other

            Bytes cross as they are, both ways, without framing or encryption of Ferry's. The connecting side ends when its \
            input ends and has been sent, the listening side when the other has left. The channel's number (PSM) stands in the \
            characteristic that Apple's devices use for it; --psm names another device's that has none.

            Ends with 0, 1 where no peer was found or the channel was refused, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeripheralOptions

    @Argument(help: "The peripheral to connect to: its name or address.")
    var peripheral: String?

    @Flag(help: "Wait to be connected to.")
    var listen = false

    @Option(help: ArgumentHelp("With --listen: what scans show.", valueName: "name"))
    var name = "ferry"

    @Option(help: ArgumentHelp("The channel's number, where the peripheral does not tell it.", valueName: "psm"))
    var psm: UInt16?

    @Option(help: ArgumentHelp("How long to look for the peripheral.", valueName: "seconds"))
    var timeout = 30.0

    @Flag(help: "With --listen: only for paired centrals. See --bonds.")
    var encrypted = false

    /// E07F0AE8-00BB-47F5-94F4-4A7174EA3070: the service that tells the channel's number.
    static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3070 as UInt128)
    /// `CBUUIDL2CAPPSMCharacteristicString`: two bytes, little end first.
    static let number = BluetoothUUID(0xABDD_3056_28FA_441D_A470_55A7_5A52_553A as UInt128)

    func validate() throws {
        guard listen != (peripheral != nil) else {
            throw ValidationError("Name the peripheral to connect to, or --listen, and not both.")
        }
        guard !listen || psm == nil else {
            throw ValidationError("With --listen the adapter chooses the channel's number. Leave --psm out.")
        }
        if let psm, !(1...255).contains(psm) {
            throw ValidationError("--psm is \(psm); give 1 to 255 (Core Specification 5.4, Vol 3, Part A, 4.22).")
        }
        guard listen || !encrypted else {
            throw ValidationError("--encrypted goes with --listen: the listening side demands it.")
        }
        guard (0.1...86_400).contains(timeout) else {
            throw ValidationError("--timeout is \(timeout); give 0.1 to 86400 seconds.")
        }
    }

    func run() async throws {
        let command = self
        try await PeripheralOptions.run {
            if command.listen { try await command.serve() } else { try await command.connect() }
        }
    }

    private func serve() async throws {
        let adapter = try await options.open()
        let listener = PipeListener()
        defer {
            listener.close()
            adapter.close()
        }
        let psm = try await listener.start(on: adapter.adapter, name: name, isEncrypted: encrypted)
        note("ferry: waiting for ferry pipe at \(name.forTerminal.debugDescription), PSM \(psm.rawValue)")
        guard let channel = try await listener.next() else { throw CancellationError() }
        try await PipeEnd(channel).run(endsWithInput: false)
    }

    private func connect() async throws {
        let adapter = try await options.open()
        let explorer = try await Explorer.open(adapter)
        defer { explorer.close() }
        let visit = try await explorer.visit(peripheral ?? "", within: .seconds(timeout))
        do {
            let channel = try await visit.connection.openL2CAPChannel(try await found(visit))
            try await PipeEnd(channel).run(endsWithInput: true)
        } catch {
            await visit.end()
            throw error
        }
        await visit.end()
    }

    private func found(_ visit: Visit) async throws -> PSM {
        if let psm { return PSM(rawValue: psm) }
        for service in try await visit.connection.discoverServices(nil) {
            let all = try await visit.connection.discoverCharacteristics([Self.number], of: service.id)
            guard let own = all.first else { continue }
            let value = try await visit.connection.readValue(of: own.id)
            guard value.count >= 2 else { continue }
            return PSM(rawValue: UInt16(value[0]) | UInt16(value[1]) << 8)
        }
        throw CommandFailure(
            "The peripheral tells no channel's number. Start ferry pipe --listen there, or give --psm.")
    }
}

/// Offers the channel, and takes the first central that opens it.
final class PipeListener: PeripheralRoleEvents {
    private let channels: AsyncStream<any L2CAPChannel>
    private let continuation: AsyncStream<any L2CAPChannel>.Continuation
    private let power = PowerWait()
    private let state = Mutex<(role: (any PeripheralRole)?, isTaken: Bool)>((nil, false))

    init() { (channels, continuation) = AsyncStream.makeStream() }

    func start(on adapter: any BluetoothAdapter, name: String, isEncrypted: Bool) async throws -> PSM {
        let role = adapter.openPeripheral(self)
        state.withLock { $0.role = role }
        try await power.wait(for: adapter.name, SystemTime())
        let psm = try await role.publishL2CAPChannel(encryptionRequired: isEncrypted)
        _ = try await role.publish(
            ServiceDefinition(
                PipeCommand.service,
                characteristics: [
                    CharacteristicDefinition(
                        PipeCommand.number, properties: [.read], permissions: [.readable],
                        value: [UInt8(psm.rawValue & 0xFF), UInt8(psm.rawValue >> 8)])
                ]))
        _ = try await role.startAdvertising(Advertisement(localName: name, services: [PipeCommand.service]))
        return psm
    }

    /// The channel; `nil` when the task is cancelled first.
    func next() async throws -> (any L2CAPChannel)? {
        for await channel in channels { return channel }
        return nil
    }

    func close() {
        continuation.finish()
        state.withLock { state in
            defer { state.role = nil }
            return state.role
        }?.close()
    }

    func peripheralAdapterDidChange(_ state: AdapterState) { power.note(state) }

    func peripheralDidOpen(_ channel: any L2CAPChannel) {
        let isFirst = state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
        if isFirst { continuation.yield(channel) } else { channel.close() }
    }
}

/// One end of the pipe: standard input goes to the link, and what it brings to standard output.
final class PipeEnd: LinkReceiver {
    private struct State {
        /// Bytes that have come and are not written yet.
        var waiting = 0
        var isPaused = false
        var reason: FerryError?
    }

    /// The peer is asked to pause above the first, and to go on below the second.
    private static let marks = (high: 256 << 10, low: 64 << 10)
    /// A peer that does not pause is not listened to any longer than this.
    private static let most = 16 << 20

    private let link: any Link
    private let input: Int32
    private let output: Int32
    private let incoming: AsyncStream<[UInt8]>
    private let arrivals: AsyncStream<[UInt8]>.Continuation
    private let ready = Bell()
    private let state = Mutex(State())
    private let time = SystemTime()

    init(_ link: any Link, input: Int32 = STDIN_FILENO, output: Int32 = STDOUT_FILENO) {
        self.link = link
        self.input = input
        self.output = output
        (incoming, arrivals) = AsyncStream.makeStream()
    }

    /// Carries bytes both ways until the link has ended.
    ///
    /// - Parameter endsWithInput: whether the link is closed when the input has ended and has been sent.
    /// - Throws: the problem with a file, or why the link has ended where neither side closed it.
    func run(endsWithInput: Bool) async throws {
        link.activate(self)
        let reading = Task {
            do { try await self.send() } catch {
                self.link.close()
                throw error
            }
            if endsWithInput { self.link.close() }
        }
        defer { reading.cancel() }
        try await withTaskCancellationHandler {
            let file = SystemFile(output, isOwned: false)
            for await bytes in incoming {
                try await SystemFile.run { try file.write(bytes[...]) }
                taken(bytes.count)
            }
        } onCancel: {
            link.close()
        }
        try Task.checkCancellation()
        guard let reason = state.withLock({ $0.reason }), ![.closed, .disconnected].contains(reason.code) else {
            return
        }
        throw reason
    }

    private func send() async throws {
        let file = SystemFile(input, isOwned: false)
        while true {
            let bytes = try await SystemFile.run { () throws -> [UInt8] in
                try [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, count in
                    count = try file.readSome(UnsafeMutableRawBufferPointer(buffer))
                }
            }
            guard !bytes.isEmpty else { return }
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + max(1, link.maximumChunkSize))
                if try link.trySend(bytes.span.bytes.extracting(start..<end)) {
                    start = end
                    continue
                }
                // A link may forget to say that it is ready.
                guard await ready.wait(until: time.now + .milliseconds(50), by: time) else { return }
            }
        }
    }

    private func taken(_ count: Int) {
        let goesOn = state.withLock { state in
            state.waiting -= count
            guard state.isPaused, state.waiting < Self.marks.low else { return false }
            state.isPaused = false
            return true
        }
        if goesOn { link.setReceiving(true) }
    }

    func linkIsReady() { ready.ring() }

    func linkDidReceive(_ chunk: RawSpan) {
        let bytes = chunk.withUnsafeBytes { Array($0) }
        let (pauses, ends) = state.withLock { state in
            state.waiting += bytes.count
            guard state.waiting > Self.marks.high else { return (false, false) }
            defer { state.isPaused = true }
            return (!state.isPaused, state.waiting > Self.most)
        }
        arrivals.yield(bytes)
        if pauses { link.setReceiving(false) }
        if ends { link.close() }
    }

    func linkDidClose(_ reason: FerryError) {
        state.withLock { $0.reason = reason }
        arrivals.finish()
        ready.silence()
    }
}
