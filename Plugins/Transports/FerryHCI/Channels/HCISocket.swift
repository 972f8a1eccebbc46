#if HCI
    import FerryBluetooth
    import Foundation

    /// Linux's HCI sockets (`net/bluetooth`).
    enum HCISocket {
        private static let family: UInt16 = 31  // AF_BLUETOOTH
        private static let hci: Int32 = 1  // BTPROTO_HCI

        #if os(Linux)
            /// Binds a socket that does not block to a channel of an adapter; the caller owns the descriptor.
            ///
            /// - Parameters:
            ///   - prepare: sets options of the socket before anything can arrive.
            ///   - explain: makes the error of `errno`.
            static func open(
                device: UInt16, channel: UInt16, prepare: (Int32) -> Void = { _ in },
                explain: (Int32) -> BluetoothError
            ) throws(BluetoothError) -> Int32 {
                let kind = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
                let descriptor = socket(Int32(family), kind, hci)
                guard descriptor >= 0 else { throw explain(errno) }
                prepare(descriptor)
                var address = [family, device, channel]
                let outcome = address.withUnsafeMutableBytes { bytes in
                    bytes.withMemoryRebound(to: sockaddr.self) { bind(descriptor, $0.baseAddress, 6) }
                }
                guard outcome == 0 else {
                    let code = errno
                    close(descriptor)
                    throw explain(code)
                }
                return descriptor
            }
        #endif
    }
#endif
