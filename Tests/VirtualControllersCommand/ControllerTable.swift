#if HCI
    import NIOCore
    import VirtualControllers

    /// The controllers and their hosts' sockets, on one event loop.
    ///
    /// A packet is completed when the other host's socket has taken it, so a host that does not read stops the one that
    /// sends, as a radio does; what is held is bounded by the buffers that the controllers say they have. Reports of
    /// advertisers are dropped for a host that does not read.
    final class ControllerTable {
        private var controllers: VirtualControllers
        private var ports: [Port]
        private let loop: any EventLoop
        /// When the controllers have something to do, and what wakes them then.
        private var alarm: (time: Int64, task: Scheduled<Void>)?

        private struct Port {
            var channel: (any Channel)?
            /// Bytes for the host that have not been written yet.
            var output = ByteBuffer()
            /// Packets for this host that are completed when it has taken them.
            var arriving: [VirtualControllers.Delivery] = []
        }

        init(_ options: VirtualControllers.Options, count: Int, on loop: any EventLoop) {
            controllers = VirtualControllers(options, count: count)
            ports = .init(repeating: Port(), count: count)
            self.loop = loop
        }

        private var now: Int64 { Int64(truncatingIfNeeded: NIODeadline.now().uptimeNanoseconds) }

        /// A host has come; false when there is one already.
        func open(_ channel: any Channel, on side: Int) -> Bool {
            guard ports[side].channel == nil else { return false }
            ports[side] = Port(channel: channel)
            return true
        }

        /// A host has gone.
        func close(_ side: Int) {
            controllers.advance(to: now)
            ports[side] = Port()
            controllers.reset(side)
            controllers.toHost[side] = []
            flush()
        }

        /// Advertisers are heard again and again.
        func advertise() {
            controllers.advance(to: now)
            for (side, port) in ports.enumerated() {
                controllers.sides[side].isStalled = port.channel?.isWritable == false
            }
            controllers.meet()
            flush()
        }

        /// Does what a line says, and returns the answer.
        func obey(_ line: String?) -> [String] {
            controllers.advance(to: now)
            let answer = controllers.obey(line)
            flush()
            return answer
        }

        /// Takes the whole packets of `stream`; false when it is none of a host's.
        func receive(_ stream: inout ByteBuffer, from side: Int) -> Bool {
            var others: [Int] = []
            var concernsAll = false
            defer {
                if concernsAll {
                    flush()
                } else {
                    flush(side)
                    for other in others { flush(other) }
                    tell()
                }
            }
            while let type: UInt8 = stream.getInteger(at: stream.readerIndex) {
                let start = stream.readerIndex
                let count: Int
                switch type {
                case 0x01:
                    guard let length: UInt8 = stream.getInteger(at: start + 3) else { return true }
                    count = 4 + Int(length)
                case 0x02:
                    guard let length: UInt16 = stream.getInteger(at: start + 3, endianness: .little) else {
                        return true
                    }
                    count = 5 + Int(length)
                default: return false
                }
                guard stream.readableBytes >= count else { return true }
                if type == 0x02 {
                    // Where time counts, more may have come due.
                    concernsAll = concernsAll || alarm != nil
                    if let other = receiveData(stream, start, count - 5, from: side), !others.contains(other) {
                        others.append(other)
                    }
                } else {
                    concernsAll = true
                    controllers.advance(to: now)
                    controllers.receive(Array(stream.readableBytesView.prefix(count)), from: side)
                }
                stream.moveReaderIndex(forwardBy: count)
            }
            return true
        }

        /// A packet that is a whole frame goes from buffer to buffer; others through the controllers. Returns where it goes.
        private func receiveData(_ stream: ByteBuffer, _ start: Int, _ count: Int, from side: Int) -> Int? {
            guard
                let (handle, _, frameCount) = stream.getMultipleIntegers(
                    at: start + 1, endianness: .little, as: (UInt16, UInt16, UInt16).self)
                    ?? stream.getMultipleIntegers(at: start + 1, endianness: .little, as: (UInt16, UInt16).self)
                    .map({ ($0.0, $0.1, 0) }),
                let slot = controllers.slot(of: handle, on: side), controllers.admit(count, from: side, on: slot),
                let connection = controllers.connections[slot]
            else { return nil }
            let end = connection.ends[0].side == side ? 0 : 1
            let other = connection.ends[1 - end].side
            if controllers.waitsForEvent(slot, end) {
                controllers.advance(to: now)
                // It may have ended by now.
                guard controllers.connections[slot]?.serial == connection.serial else { return other }
                controllers.wait(stream.getBytes(at: start, length: 5 + count) ?? [], slot, end)
                return other
            }
            arrive(.init(slot: slot, serial: connection.serial, end: end, count: 1), at: other)
            if count >= 4,
                controllers.isWholeFrame(
                    UInt8(truncatingIfNeeded: handle >> 8), count: count, frameCount: Int(frameCount), on: slot, end)
            {
                collect(other)
                ports[other].output.writeMultipleIntegers(
                    UInt8(0x02), VirtualControllers.handle(of: slot) | 0x2000, UInt16(truncatingIfNeeded: count),
                    endianness: .little)
                ports[other].output.writeImmutableBuffer(stream.getSlice(at: start + 5, length: count) ?? ByteBuffer())
            } else {
                controllers.deliver(
                    stream.getBytes(at: start, length: 5 + count) ?? [], from: side, on: slot)
            }
            return other
        }

        /// Notes packets that are on their way to a host.
        private func arrive(_ delivery: VirtualControllers.Delivery, at side: Int) {
            let place = ports[side].arriving.firstIndex { $0.serial == delivery.serial && $0.end == delivery.end }
            if let place {
                ports[side].arriving[place].count += delivery.count
            } else {
                ports[side].arriving.append(delivery)
            }
        }

        /// Moves what the controllers have for a host to its buffer.
        private func collect(_ side: Int) {
            guard !controllers.toHost[side].isEmpty else { return }
            for packet in controllers.toHost[side] { ports[side].output.writeBytes(packet) }
            controllers.toHost[side].removeAll(keepingCapacity: true)
        }

        private func flush() {
            for delivery in controllers.deliveries {
                guard let connection = controllers.connections[delivery.slot], connection.serial == delivery.serial
                else {
                    continue
                }
                arrive(delivery, at: connection.ends[1 - delivery.end].side)
            }
            controllers.deliveries = []
            for side in ports.indices { flush(side) }
            tell()
        }

        /// Says what there is to say, and sets the alarm.
        private func tell() {
            for fault in controllers.faults { say("!! \(fault)") }
            controllers.faults = []
            for line in controllers.news { say(line) }
            controllers.news = []
            let deadline = controllers.deadline
            guard deadline != alarm?.time else { return }
            alarm?.task.cancel()
            alarm = deadline.map { time in
                let due = NIODeadline.uptimeNanoseconds(UInt64(max(0, time)))
                return (time, loop.assumeIsolated().scheduleTask(deadline: due) { self.wake() })
            }
        }

        private func wake() {
            alarm = nil
            controllers.advance(to: now)
            flush()
        }

        /// Writes what there is for a host, and completes the others' packets once that has been taken.
        private func flush(_ side: Int) {
            collect(side)
            let arriving = ports[side].arriving
            ports[side].arriving = []
            let output = ports[side].output
            guard let channel = ports[side].channel, output.readableBytes > 0 else {
                ports[side].output.clear()
                complete(arriving)
                return
            }
            ports[side].output = channel.allocator.buffer(capacity: output.readableBytes)
            let written = channel.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenSuccess { self.complete(arriving) }
            channel.writeAndFlush(output, promise: written)
        }

        private func complete(_ deliveries: [VirtualControllers.Delivery]) {
            for delivery in deliveries where delivery.count > 0 {
                guard let connection = controllers.connections[delivery.slot] else { continue }
                controllers.completePackets(delivery)
                flush(connection.ends[delivery.end].side)
            }
        }
    }
#endif
