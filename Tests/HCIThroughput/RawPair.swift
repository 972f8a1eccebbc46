#if HCI
    import FerryHCI
    import Foundation

    /// A value as an L2CAP frame, in the ACL packets that a controller takes.
    struct FrameShape {
        /// Bytes of the frame without its header: a notification has 3 before the value, an SDU 2.
        let payload: [UInt8]
        let channel: UInt8

        init(isNotification: Bool, length: Int) {
            let value = [UInt8](repeating: 0x55, count: length)
            payload =
                isNotification ? [0x1B, 0x10, 0x00] + value : [UInt8(length & 0xFF), UInt8(length >> 8)] + value
            channel = isNotification ? 0x04 : 0x40
        }

        /// Packets of at most `limit` bytes for a connection.
        func packets(_ handle: UInt16, atMost limit: Int) -> [[UInt8]] {
            let frame = [UInt8(payload.count & 0xFF), UInt8(payload.count >> 8), channel, 0] + payload
            return stride(from: 0, to: frame.count, by: limit).map { start in
                let piece = frame[start..<min(start + limit, frame.count)]
                let header = handle | (start == 0 ? 0 : 0x1000)
                return [
                    2, UInt8(header & 0xFF), UInt8(header >> 8), UInt8(piece.count & 0xFF), UInt8(piece.count >> 8),
                ]
                    + piece
            }
        }
    }

    /// Two sockets to two controllers and no host: one thread that does nothing else than to keep the controllers' buffers full.
    struct RawPair {
        private let source: RawSocket
        private let sink: RawSocket

        init(_ channels: [HCIChannel]) throws {
            source = try RawSocket(channels[0])
            sink = try RawSocket(channels[1])
        }

        func measure(_ shape: FrameShape, count: Int) throws -> Measured {
            let (length, buffers) = try setUp()
            let handle = try connect()
            let frame = shape.packets(handle, atMost: length)
            let total = count * frame.count
            let bytesEach = frame.reduce(0) { $0 + $1.count - 5 }
            var (sent, credits, received) = (0, buffers, 0)
            var output: [UInt8] = []
            let stop = Measured.start()
            while received < count * bytesEach {
                output.removeAll(keepingCapacity: true)
                while credits > 0, sent < total {
                    output += frame[sent % frame.count]
                    credits -= 1
                    sent += 1
                }
                try source.write(output)
                let ready = try RawSocket.wait(source, sink)
                if ready.0 {
                    try source.read { packet in
                        if packet[0] == 0x04, packet[1] == 0x13 { credits += Int(packet[6]) | Int(packet[7]) << 8 }
                    }
                }
                if ready.1 { try sink.read { packet in if packet[0] == 0x02 { received += packet.count - 5 } } }
            }
            return stop()
        }

        /// Resets both and returns the length and number of a controller's buffers.
        private func setUp() throws -> (Int, Int) {
            for (socket, address) in [(source, UInt8(0xF1)), (sink, 0xF0)] {
                _ = try socket.ask(0x0C03)
                _ = try socket.ask(0x0C01, [UInt8](repeating: 0xFF, count: 8))
                _ = try socket.ask(0x2001, [UInt8](repeating: 0xFF, count: 8))
                _ = try socket.ask(0x2005, [UInt8](repeating: address, count: 6))
            }
            let answer = try source.ask(0x2002)
            return (Int(answer[7]) | Int(answer[8]) << 8, Int(answer[9]))
        }

        /// Connects with the legacy commands, which both kinds of controllers have; returns the source's handle.
        private func connect() throws -> UInt16 {
            _ = try source.ask(0x2006, [32, 0, 32, 0, 0, 1, 0] + [UInt8](repeating: 0, count: 6) + [7, 0])
            _ = try source.ask(0x200A, [1])
            _ = try sink.ask(
                0x200D,
                [16, 0, 16, 0, 0, 1] + [UInt8](repeating: 0xF1, count: 6) + [1, 12, 0, 12, 0, 0, 0, 200, 0, 0, 0, 0, 0])
            let isConnection: ([UInt8]) -> Bool = { $0[1] == 0x3E && [0x01, 0x0A].contains($0[3]) }
            _ = try sink.wait(isConnection)
            let event = try source.wait(isConnection)
            return UInt16(event[5]) | UInt16(event[6]) << 8
        }
    }

    /// A blocking socket that carries H4.
    final class RawSocket {
        private let descriptor: Int32
        private var input = [UInt8](repeating: 0, count: 1 << 16)
        private var held = 0
        private var events: [[UInt8]] = []

        init(_ channel: HCIChannel) throws {
            switch channel {
            case .tcp(let host, let port):
                var hints = addrinfo()
                hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
                var found: UnsafeMutablePointer<addrinfo>?
                guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let first = found else {
                    throw ThroughputError(description: "\(host) is not known.")
                }
                defer { freeaddrinfo(first) }
                descriptor = socket(first.pointee.ai_family, Int32(SOCK_STREAM.rawValue), 0)
                guard Foundation.connect(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 else {
                    throw ThroughputError(description: "\(channel): \(String(cString: strerror(errno)))")
                }
                var isOn: Int32 = 1
                setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, 4)
            default: throw ThroughputError(description: "\(channel): the ceiling is measured over TCP only.")
            }
        }

        deinit { close(descriptor) }

        /// Waits until one of them has something to read; 5 s at most.
        static func wait(_ first: RawSocket, _ second: RawSocket) throws -> (Bool, Bool) {
            var polled = [first, second].map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, 2, 5000) > 0 else { throw ThroughputError(description: "Nothing moves any more.") }
            return (polled[0].revents != 0, polled[1].revents != 0)
        }

        func write(_ bytes: [UInt8]) throws {
            var start = 0
            while start < bytes.count {
                let count = bytes.withUnsafeBytes {
                    Foundation.write(descriptor, $0.baseAddress.map { $0 + start }, $0.count - start)
                }
                guard count > 0 else { throw ThroughputError(description: "The controller is gone.") }
                start += count
            }
        }

        /// Reads once and hands over the whole packets.
        func read(_ body: (UnsafeRawBufferPointer) -> Void) throws {
            let held = held
            let count = input.withUnsafeMutableBytes {
                Foundation.read(descriptor, $0.baseAddress.map { $0 + held }, $0.count - held)
            }
            guard count > 0 else { throw ThroughputError(description: "The controller is gone.") }
            self.held += count
            input.withUnsafeMutableBytes { bytes in
                var start = 0
                while self.held - start >= 5 {
                    let length =
                        bytes[start] == 0x04
                        ? 3 + Int(bytes[start + 2]) : 5 + (Int(bytes[start + 3]) | Int(bytes[start + 4]) << 8)
                    guard self.held - start >= length else { break }
                    body(UnsafeRawBufferPointer(rebasing: bytes[start..<start + length]))
                    start += length
                }
                bytes.copyBytes(from: bytes[start..<self.held])
                self.held -= start
            }
        }

        /// Sends a command and waits for its end.
        func ask(_ opcode: UInt16, _ parameters: [UInt8] = []) throws -> [UInt8] {
            let (low, high) = (UInt8(opcode & 0xFF), UInt8(opcode >> 8))
            try write([1, low, high, UInt8(parameters.count)] + parameters)
            return try wait { $0[1] == 0x0E && $0[4...5] == [low, high] || $0[1] == 0x0F && $0[5...6] == [low, high] }
        }

        func wait(_ isWanted: ([UInt8]) -> Bool) throws -> [UInt8] {
            while true {
                if let place = events.firstIndex(where: isWanted) { return events.remove(at: place) }
                guard try Self.wait(self, self).0 else { continue }
                var fresh: [[UInt8]] = []
                try read { if $0[0] == 0x04, $0.count > 6 { fresh.append(Array($0)) } }
                events += fresh
            }
        }
    }
#endif
