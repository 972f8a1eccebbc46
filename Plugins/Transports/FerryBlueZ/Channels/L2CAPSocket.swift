#if BlueZ
    import CSystemd
    import Ferry
    import FerryBluetooth
    import Glibc

    /// A device's address as the kernel's sockets take it.
    struct DeviceAddress: Hashable, Sendable {
        /// Six bytes, the least significant first.
        let bytes: [UInt8]
        let isRandom: Bool

        init(bytes: [UInt8], isRandom: Bool) {
            self.bytes = bytes
            self.isRandom = isRandom
        }

        /// From the properties `Address` and `AddressType` of `org.bluez.Device1` and `Adapter1`.
        init?(_ object: ObjectTree.Properties) {
            let digits = (object["Address"]?.text ?? "").split(separator: ":")
            let bytes = digits.compactMap { UInt8($0, radix: 16) }
            guard digits.count == 6, bytes.count == 6 else { return nil }
            self.bytes = bytes.reversed()
            isRandom = object["AddressType"]?.text == "random"
        }

        init(_ value: UInt64, isRandom: Bool) {
            self.init(
                bytes: (0..<6).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }, isRandom: isRandom)
        }

        /// The 48 bits.
        var value: UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }

        /// What BlueZ calls the device's object, below its adapter's.
        var objectName: String {
            "dev_" + claimedIdentity.name.prefix(17).map { $0 == ":" ? "_" : String($0) }.joined()
        }

        /// Who the device says it is.
        var claimedIdentity: PeerIdentity {
            PeerIdentity(bluetoothAddress: value, isRandom: isRandom, isProven: false)
        }
    }

    /// A kernel socket for LE credit-based channels (Core Specification 5.4, Vol 3, Part A, 10): one packet is one SDU,
    /// and the kernel counts the credits.
    struct L2CAPSocket {
        let descriptor: FileDescriptor

        init(owning descriptor: Int32) { self.descriptor = FileDescriptor(owning: descriptor) }

        /// Opens a socket of an adapter's.
        ///
        /// - Parameter receiveMTU: the most bytes of an SDU that the peer may send.
        init(from own: DeviceAddress, receiveMTU: UInt16) throws(BluetoothError) {
            let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let raw = socket(Int32(FERRY_AF_BLUETOOTH), type, Int32(FERRY_BTPROTO_L2CAP))
            guard raw >= 0 else { throw Self.missing(errno) }
            descriptor = FileDescriptor(owning: raw)
            // Number 0: the kernel chooses a free one from 0x80 on, which needs no privileges.
            var address = Self.address(own, psm: 0)
            guard Self.with(&address, { bind(raw, $0, $1) }) == 0 else {
                // What the kernel says when no dynamic number is free (`l2cap_add_psm` in net/bluetooth/l2cap_core.c).
                if errno == EINVAL { throw .noPSM }
                throw Self.error("An L2CAP socket cannot use the adapter", errno)
            }
            try set(FERRY_BT_RCVMTU, receiveMTU, "The MTU of an L2CAP socket cannot be \(receiveMTU)")
        }

        static func missing(_ number: Int32) -> BluetoothError {
            BluetoothError(
                .notSupported,
                "The kernel gives no L2CAP sockets here (\(String(cString: strerror(number)))). It needs its module "
                    + "bluetooth (modprobe bluetooth), and in a container the host's network namespace.")
        }

        /// In the adapter seam's words.
        static func error(_ what: String, _ number: Int32) -> BluetoothError {
            let code: BluetoothError.Code =
                switch number {
                case ECONNREFUSED: .channelRefused
                case ETIMEDOUT: .timedOut
                case EHOSTDOWN, EHOSTUNREACH, ENETDOWN, ENOTCONN, ECONNRESET, ECONNABORTED: .notConnected
                case EADDRINUSE, EMFILE, ENFILE, ENOMEM, ENOBUFS, EBUSY: .connectionFailed
                case EACCES, EPERM: .notSupported
                case EINVAL, EADDRNOTAVAIL: .invalidArgument
                default: .connectionFailed
                }
            var advice = ""
            if number == EACCES || number == EPERM { advice = " Numbers below 0x80 need CAP_NET_BIND_SERVICE." }
            return BluetoothError(code, "\(what): \(String(cString: strerror(number))).\(advice)")
        }

        // MARK: Options

        private func set<Value>(
            _ option: Int, _ value: Value, _ what: String
        ) throws(BluetoothError) {
            let result = withUnsafeBytes(of: value) { bytes in
                setsockopt(
                    descriptor.rawValue, Int32(FERRY_SOL_BLUETOOTH), Int32(option),
                    bytes.baseAddress, socklen_t(bytes.count))
            }
            guard result == 0 else { throw Self.error(what, errno) }
        }

        /// Has the kernel refuse connections that are not encrypted.
        func requireEncryption() throws(BluetoothError) {
            try set(
                FERRY_BT_SECURITY, ferry_bt_security(level: 2, key_size: 0), "An L2CAP socket cannot be made secure")
        }

        /// The most bytes of an SDU that the peer takes.
        ///
        /// - Throws: `notConnected` when the channel has ended already.
        func sendMTU() throws(BluetoothError) -> Int {
            var mtu: UInt16 = 0
            var count = socklen_t(MemoryLayout<UInt16>.size)
            let level = Int32(FERRY_SOL_BLUETOOTH)
            guard getsockopt(descriptor.rawValue, level, Int32(FERRY_BT_SNDMTU), &mtu, &count) == 0 else {
                throw Self.error("The channel ended as soon as it was open", errno)
            }
            return Int(mtu)
        }

        /// What a non-blocking `connect` has come to: 0, or the reason why not.
        var outcome: Int32 {
            var number: Int32 = 0
            var count = socklen_t(MemoryLayout<Int32>.size)
            guard getsockopt(descriptor.rawValue, SOL_SOCKET, SO_ERROR, &number, &count) == 0 else { return errno }
            return number
        }

        // MARK: Connecting

        /// Begins to connect. True when it is done already.
        func connect(to peer: DeviceAddress, psm: UInt16) throws(BluetoothError) -> Bool {
            var address = Self.address(peer, psm: psm)
            guard Self.with(&address, { Glibc.connect(descriptor.rawValue, $0, $1) }) != 0 else { return true }
            guard errno == EINPROGRESS || errno == EAGAIN else {
                throw Self.error("The L2CAP channel cannot be opened", errno)
            }
            return false
        }

        /// Listens.
        ///
        /// - Returns: the number that the kernel chose.
        func listen() throws(BluetoothError) -> UInt16 {
            guard Glibc.listen(descriptor.rawValue, 16) == 0 else {
                throw Self.error("An L2CAP channel cannot be published", errno)
            }
            var address = ferry_sockaddr_l2()
            let result = Self.with(&address) { pointer, count in
                var count = count
                return getsockname(descriptor.rawValue, pointer, &count)
            }
            guard result == 0 else { throw Self.error("An L2CAP channel cannot be published", errno) }
            return UInt16(littleEndian: address.psm)
        }

        /// Has the kernel take no more connections.
        static func end(_ listener: FileDescriptor) { shutdown(listener.rawValue, Int32(SHUT_RDWR)) }

        /// Takes a connection that waits. Nil when there is none, or the reason why it cannot be taken.
        func accept() -> Result<(L2CAPSocket, DeviceAddress), SocketFailure>? {
            var address = ferry_sockaddr_l2()
            let raw = Self.with(&address) { pointer, count in
                var count = count
                return Glibc.accept(descriptor.rawValue, pointer, &count)
            }
            guard raw >= 0 else {
                return errno == EAGAIN || errno == EINTR ? nil : .failure(SocketFailure(number: errno))
            }
            _ = fcntl(raw, F_SETFD, FD_CLOEXEC)
            _ = fcntl(raw, F_SETFL, O_NONBLOCK)
            let octets = withUnsafeBytes(of: address.address) { [UInt8]($0) }
            return .success(
                (L2CAPSocket(owning: raw), DeviceAddress(bytes: octets, isRandom: address.address_type == 2)))
        }

        /// An `errno`.
        struct SocketFailure: Error { let number: Int32 }

        // MARK: How full it is

        /// The bytes, as the kernel counts them, that it has not handed to the controller; 0 where it does not tell.
        static let queuedBytes: @Sendable (Int32) -> Int = { descriptor in
            // For Bluetooth's sockets the request answers with the free space (bt_sock_ioctl), not the queued bytes.
            var space: Int32 = 0
            var size: Int32 = 0
            var count = socklen_t(MemoryLayout<Int32>.size)
            guard ioctl(descriptor, UInt(TIOCOUTQ), &space) == 0,
                getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, &count) == 0
            else { return 0 }
            return max(0, Int(size) - Int(space))
        }

        /// The bytes of the first packet that waits to be read.
        static func waitingBytes(_ descriptor: Int32) -> Int {
            var count: Int32 = 0
            return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
        }

        static func hasHungUp(_ descriptor: Int32) -> Bool {
            var entry = pollfd(fd: descriptor, events: 0, revents: 0)
            return poll(&entry, 1, 0) > 0 && Int32(entry.revents) & (POLLHUP | POLLERR | POLLNVAL) != 0
        }

        private static func address(_ device: DeviceAddress, psm: UInt16) -> ferry_sockaddr_l2 {
            let octets = device.bytes
            return ferry_sockaddr_l2(
                family: UInt16(FERRY_AF_BLUETOOTH), psm: psm.littleEndian,
                address: (octets[0], octets[1], octets[2], octets[3], octets[4], octets[5]), channel: 0,
                address_type: device.isRandom ? 2 : 1)
        }

        private static func with(
            _ address: inout ferry_sockaddr_l2, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Int32
        ) -> Int32 {
            withUnsafeMutableBytes(of: &address) { bytes in
                guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
                return body(pointer, socklen_t(bytes.count))
            }
        }
    }
#endif
