#if HCI
    import NIOCore
    import VirtualControllers

    /// The two controllers and their hosts' sockets, on one event loop.
    ///
    /// A packet is completed when the other host's socket has taken it, so a host that does not read stops the one that
    /// sends, as a radio does; what is held is bounded by the buffers that the controllers say they have.
    final class ControllerTable {
        private var controllers: VirtualControllers
        private var ports = [Port(), Port()]

        private struct Port {
            var channel: (any Channel)?
            /// Bytes for the host that have not been written yet.
            var output = ByteBuffer()
            /// Packets of this host's that are on their way to the other.
            var delivered = 0
        }

        init(_ options: VirtualControllers.Options) { controllers = VirtualControllers(options) }

        /// A host has come; false when there is one already.
        func open(_ channel: any Channel, on side: Int) -> Bool {
            guard ports[side].channel == nil else { return false }
            ports[side] = Port(channel: channel)
            return true
        }

        /// A host has gone.
        func close(_ side: Int) {
            ports[side] = Port()
            controllers.reset(side)
            controllers.toHost[side] = []
            flush()
        }

        /// Advertisers are heard again and again.
        func advertise() {
            controllers.meet()
            flush()
        }

        /// Takes the whole packets of `stream`; false when it is none of a host's.
        func receive(_ stream: inout ByteBuffer, from side: Int) -> Bool {
            while let type: UInt8 = stream.getInteger(at: stream.readerIndex) {
                let start = stream.readerIndex
                let count: Int
                switch type {
                case 0x01:
                    guard let length: UInt8 = stream.getInteger(at: start + 3) else { return finish() }
                    count = 4 + Int(length)
                case 0x02:
                    guard let length: UInt16 = stream.getInteger(at: start + 3, endianness: .little) else {
                        return finish()
                    }
                    count = 5 + Int(length)
                default: return false
                }
                guard stream.readableBytes >= count else { return finish() }
                if type == 0x02 {
                    receiveData(stream, start, count - 5, from: side)
                } else {
                    controllers.receive(Array(stream.readableBytesView.prefix(count)), from: side)
                }
                stream.moveReaderIndex(forwardBy: count)
            }
            return finish()
        }

        private func finish() -> Bool {
            flush()
            return true
        }

        /// A packet that is a whole frame goes from buffer to buffer; others through the controllers.
        private func receiveData(_ stream: ByteBuffer, _ start: Int, _ count: Int, from side: Int) {
            guard controllers.admit(count, from: side) else { return }
            ports[side].delivered += 1
            let header = stream.getMultipleIntegers(
                at: start + 1, endianness: .little, as: (UInt16, UInt16, UInt16).self)
            if let (handle, _, frameCount) = header, count >= 4,
                controllers.isWholeFrame(
                    UInt8(truncatingIfNeeded: handle >> 8), count: count, frameCount: Int(frameCount), from: side)
            {
                collect(1 - side)
                ports[1 - side].output.writeMultipleIntegers(
                    UInt8(0x02), VirtualControllers.handle | 0x2000, UInt16(truncatingIfNeeded: count),
                    endianness: .little)
                ports[1 - side].output.writeImmutableBuffer(
                    stream.getSlice(at: start + 5, length: count) ?? ByteBuffer())
            } else {
                controllers.deliver(stream.getBytes(at: start, length: 5 + count) ?? [], from: side)
            }
        }

        /// Moves what the controllers have for a host to its buffer.
        private func collect(_ side: Int) {
            guard !controllers.toHost[side].isEmpty else { return }
            for packet in controllers.toHost[side] { ports[side].output.writeBytes(packet) }
            controllers.toHost[side].removeAll(keepingCapacity: true)
        }

        private func flush() {
            for side in 0...1 { flush(side) }
            for fault in controllers.faults { say("!! \(fault)") }
            controllers.faults = []
        }

        /// Writes what there is for a host, and completes the other's packets once that has been taken.
        private func flush(_ side: Int) {
            collect(side)
            let delivered = ports[1 - side].delivered
            ports[1 - side].delivered = 0
            let output = ports[side].output
            guard let channel = ports[side].channel, output.readableBytes > 0 else {
                ports[side].output.clear()
                complete(delivered, on: 1 - side)
                return
            }
            ports[side].output = channel.allocator.buffer(capacity: output.readableBytes)
            let written = channel.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenSuccess { self.complete(delivered, on: 1 - side) }
            channel.writeAndFlush(output, promise: written)
        }

        private func complete(_ count: Int, on side: Int) {
            guard count > 0 else { return }
            controllers.completePackets(count, on: side)
            flush(side)
        }
    }
#endif
