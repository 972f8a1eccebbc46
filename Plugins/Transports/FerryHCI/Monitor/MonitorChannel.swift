#if HCI
    import FerryBluetooth
    import Foundation

    /// Linux's HCI monitor channel: what all programs and the kernel exchange with all adapters (`net/bluetooth`,
    /// `HCI_CHANNEL_MONITOR`).
    enum MonitorChannel {
        private static let noDevice: UInt16 = 0xFFFF  // HCI_DEV_NONE
        private static let channel: UInt16 = 2  // HCI_CHANNEL_MONITOR

        /// Opens the channel; the caller owns the descriptor.
        static func open() throws(BluetoothError) -> Int32 {
            #if os(Linux)
                try HCISocket.open(device: noDevice, channel: channel, explain: explain)
            #else
                throw BluetoothError(.notSupported, "The HCI monitor channel is Linux's; this is another system.")
            #endif
        }

        /// The error's meaning and remedy.
        static func explain(_ code: Int32) -> BluetoothError {
            switch code {
            case EAFNOSUPPORT, EPROTONOSUPPORT:
                BluetoothError(
                    .notPoweredOn,
                    "This machine's kernel has no Bluetooth (or this container may not use it): load the module bluetooth."
                )
            case EPERM, EACCES:
                BluetoothError(
                    .notPoweredOn,
                    "This process may not listen to the adapters: it needs the capability CAP_NET_RAW "
                        + "(`setcap cap_net_raw+ep PROGRAM`), or root.")
            default:
                BluetoothError(
                    .notPoweredOn, "The monitor channel cannot be opened: \(String(cString: strerror(code))).")
            }
        }
    }
#endif
