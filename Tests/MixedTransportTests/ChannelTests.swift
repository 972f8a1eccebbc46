#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    extension MixedTests {
        /// What the kernel's socket does, as `l2test` has it.
        enum Socket: String, CaseIterable, Sendable {
            case connectsAndSends = "-s"
            case connectsAndReceives = "-u"
            case listensAndSends = "-w"
            case listensAndReceives = "-r"

            var connects: Bool { self == .connectsAndSends || self == .connectsAndReceives }
            var sends: Bool { self == .connectsAndSends || self == .listensAndSends }
        }

        /// A credit-based channel between Ferry's host and a socket of the kernel's, which checks what it receives.
        @Test(arguments: Socket.allCases)
        func creditBasedChannelsMeetKernelSockets(socket: Socket) async throws {
            let count = 60
            let size = 600
            let host = try await Guest.host { $0.address = 0x00FE_1234_5678 }
            defer { host.close() }
            let server = Server()
            let channel: any L2CAPChannel
            let pipe = Pipe()
            var arguments = ["-V", "le_random", "-b", "\(size)", "-I", "\(size)"]
            if socket.sends { arguments += ["-N", "\(count)"] }
            let client = Client(host)
            let program: Program
            if socket.connects {
                try await server.open(host)
                let psm = try #require(try await server.role?.publishL2CAPChannel(encryptionRequired: false))
                arguments += ["-P", "\(psm.rawValue)", "C0:FE:12:34:56:78"]
                program = try Self.l2test(socket, arguments)
                try await until("the kernel's socket to connect") { server.get { !$0.channels.isEmpty } }
                channel = try #require(server.get { $0.channels.first })
                channel.activate(pipe)
            } else {
                try await server.open(try await Guest.bluez())
                arguments[1] = "le_public"
                program = try Self.l2test(socket, arguments + ["-P", "144"])
                let connection = try await client.connect()
                channel = try await Self.open(144, connection)
                channel.activate(pipe)
            }
            if socket.sends {
                try await until("\(count) frames") { pipe.get { $0.received.count } >= count }
                #expect(pipe.get { $0.received } == (0..<count).map { Self.frame($0, size) })
                try await until("the channel's end") { pipe.get { $0.reason } != nil }
            } else {
                #expect(channel.maximumChunkSize >= size)
                try await Self.send((0..<count).map { Self.frame($0, size) }, over: channel, pipe)
                // The last frames wait for credits.
                try await until("\(count) frames in \(program.text)") {
                    program.text.components(separatedBy: "\(size) bytes in").count > count
                }
                channel.close()
            }
            // The one that listens would listen for the next one.
            if socket.connects {
                try await until("the kernel's socket to close") { !program.isRunning }
            }
            program.end()
            let text = program.text
            #expect(!text.contains("mismatch") && !text.contains("missmatch"), "\(text)")
            if !socket.sends { #expect(text.contains("\(size) bytes in"), "\(text)") }
            client.close()
            server.close()
        }

        /// A channel that is closed sends the SDUs that wait for the peer's credits first. Ferry's host gives 128, and no more while a
        /// channel has no receiver.
        @Test func creditBasedChannelsCloseWhenWhatWaitsForCreditsHasGone() async throws {
            let host = try await Guest.host()
            defer { host.close() }
            let server = Server()
            try await server.open(host)
            let psm = try #require(try await server.role?.publishL2CAPChannel(encryptionRequired: false))
            let client = Client(try await Guest.bluez())
            let connection = try await client.connect()
            let value = try #require(try await client.discover(connection)[Layout.value])
            let channel = try await connection.openL2CAPChannel(psm)
            let sender = Pipe()
            channel.activate(sender)
            try await until("the host's end of the channel") { server.get { !$0.channels.isEmpty } }
            let received = try #require(server.get { $0.channels.first })
            // A small SDU takes one credit, a largest one two: of the last of 65 the second half waits.
            let frames = (0..<65).map { Self.frame($0, $0 == 0 ? 100 : channel.maximumChunkSize) }
            try await Self.send(frames, over: channel, sender)
            let small = frames[0]
            let isTaken = try channel.trySend(small.span.bytes)
            try #require(!isTaken, "credits are left: SDUs of \(channel.maximumChunkSize) bytes")
            channel.close()
            // The answer comes by the thread that closes the channel.
            _ = try await connection.readValue(of: value)
            #expect(sender.get { $0.reason } == nil)
            let receiver = Pipe()
            received.activate(receiver)
            try await until("the channel's end") { receiver.get { $0.reason } != nil }
            let arrived = receiver.get { $0.received }
            let areWhole = arrived == frames
            #expect(areWhole, "\(arrived.count) of \(frames.count) SDUs")
            connection.disconnect()
            client.close()
            server.close()
        }

        private static func send(_ frames: [[UInt8]], over channel: any L2CAPChannel, _ pipe: Pipe) async throws {
            for frame in frames {
                let readies = pipe.get { $0.readies }
                while try !channel.trySend(frame.span.bytes) {
                    try await until("space in the channel") { pipe.get { $0.readies } > readies }
                }
            }
        }

        private static func l2test(_ socket: Socket, _ arguments: [String]) throws -> Program {
            try Program("/usr/sbin/chroot", ["/guest", "l2test", socket.rawValue] + arguments)
        }

        /// The kernel refuses until its socket listens.
        private static func open(_ psm: UInt16, _ connection: any PeripheralConnection) async throws -> any L2CAPChannel
        {
            var channel: (any L2CAPChannel)?
            try await until("the kernel's socket") {
                do throws(BluetoothError) { channel = try await connection.openL2CAPChannel(PSM(rawValue: psm)) } catch
                {
                    guard error.code == .channelRefused else { throw error }
                }
                return channel != nil
            }
            return try #require(channel)
        }

        /// What `l2test` sends and expects: number, length, and a byte over and over.
        private static func frame(_ number: Int, _ size: Int) -> [UInt8] {
            let number = UInt32(number)
            return (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
                + [UInt8(truncatingIfNeeded: size), UInt8(truncatingIfNeeded: size >> 8)]
                + [UInt8](repeating: 0x7F, count: size - 6)
        }
    }

    /// One end of a channel.
    private final class Pipe: LinkReceiver, Sendable {
        struct Record {
            var received: [[UInt8]] = []
            var readies = 0
            var reason: FerryError?
        }

        private let record = Mutex(Record())

        func get<Value: Sendable>(_ read: (Record) -> Value) -> Value { record.withLock { read($0) } }

        func linkDidReceive(_ chunk: RawSpan) {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            record.withLock { $0.received.append(bytes) }
        }
        func linkIsReady() { record.withLock { $0.readies += 1 } }
        func linkDidClose(_ reason: FerryError) { record.withLock { $0.reason = reason } }
    }
#endif
