#if HCI
    import FerryBluetooth
    import Foundation
    import NIOCore

    /// Linux's HCI user channel: one adapter of this machine, exclusively, without the kernel's host (`net/bluetooth`,
    /// `HCI_CHANNEL_USER`).
    enum UserChannel {
        private static let channel: UInt16 = 1  // HCI_CHANNEL_USER

        /// Opens the adapter hci`device`; the caller owns the descriptor.
        static func open(_ device: UInt16) throws(BluetoothError) -> Int32 {
            #if os(Linux)
                try HCISocket.open(
                    device: device, channel: channel,
                    prepare: { descriptor in
                        // The kernel silently drops packets that do not fit the socket's buffer. So it has room for
                        // more than a second of the fastest radio, beyond the system's limit, which a process that may
                        // open the channel may exceed.
                        var room: Int32 = 8 << 20
                        setsockopt(
                            descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &room, socklen_t(MemoryLayout<Int32>.size))
                    }, explain: { explain($0, device) })
            #else
                throw BluetoothError(.notSupported, "HCI user channels are Linux's; this is another system.")
            #endif
        }

        /// The error's meaning and remedy.
        static func explain(_ code: Int32, _ device: UInt16) -> BluetoothError {
            switch code {
            case EAFNOSUPPORT, EPROTONOSUPPORT:
                BluetoothError(
                    .notPoweredOn,
                    "This machine's kernel has no Bluetooth (or this container may not use it): load the module bluetooth."
                )
            case ENODEV, ENOENT:
                BluetoothError(
                    .notPoweredOn, "There is no adapter hci\(device). `ls /sys/class/bluetooth` lists those there are.")
            case EBUSY:
                BluetoothError(
                    .notPoweredOn,
                    "The adapter hci\(device) is up, or another program has it: a user channel needs it down. "
                        + "`btmgmt --index \(device) power off`, or stop bluetoothd.")
            case EPERM, EACCES:
                BluetoothError(
                    .notPoweredOn,
                    "This process may not take hci\(device): it needs the capability CAP_NET_ADMIN "
                        + "(`setcap cap_net_admin+ep PROGRAM`), or root.")
            #if os(Linux)
                // Apple's systems have no such number.
                case ERFKILL:
                    BluetoothError(.notPoweredOn, "The adapter hci\(device) is blocked: `rfkill unblock bluetooth`.")
            #endif
            default:
                BluetoothError(
                    .notPoweredOn, "The adapter hci\(device) cannot be taken: \(String(cString: strerror(code))).")
            }
        }
    }

    /// Writes one HCI packet at a time: to the kernel's socket each write is a packet, and several must not be gathered into
    /// one.
    final class PacketWriter: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private var waiting: CircularBuffer<ByteBuffer> = []
        private var isWriting = false

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            var buffer = unwrapOutboundIn(data)
            while let packet = Self.packet(&buffer) { waiting.append(packet) }
            promise?.succeed()
            writeNext(context)
        }

        private func writeNext(_ context: ChannelHandlerContext) {
            guard !isWriting, let packet = waiting.popFirst() else { return }
            isWriting = true
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenComplete { _ in
                self.isWriting = false
                self.writeNext(context)
            }
            context.writeAndFlush(wrapOutboundOut(packet), promise: written)
        }

        /// The first packet of H4 bytes that this host has made: a command or data.
        static func packet(_ buffer: inout ByteBuffer) -> ByteBuffer? {
            let start = buffer.readerIndex
            guard let indicator: UInt8 = buffer.getInteger(at: start) else { return nil }
            let length: Int
            if indicator == 0x01 {
                guard let count: UInt8 = buffer.getInteger(at: start + 3) else { return nil }
                length = 4 + Int(count)
            } else {
                guard let count: UInt16 = buffer.getInteger(at: start + 3, endianness: .little) else { return nil }
                length = 5 + Int(count)
            }
            return buffer.readSlice(length: length)
        }
    }
#endif
