#if BlueZ
    import CSystemd
    import FerryBluetooth
    import Glibc

    /// One question to the kernel's management interface (BlueZ, doc/mgmt-api.txt), on its own socket: "Get Connection
    /// Information", which needs CAP_NET_ADMIN. The kernel asks the controller at most once a second.
    enum Management {
        private static let getConnectionInformation: UInt16 = 0x0031
        private static let commandComplete: UInt16 = 0x0001
        private static let commandStatus: UInt16 = 0x0002
        static let invalidRSSI = 127

        /// The question, as it goes through the socket.
        static func question(_ adapter: UInt16, _ device: DeviceAddress) -> [UInt8] {
            let header = [getConnectionInformation, adapter, 7].flatMap {
                [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)]
            }
            return header + device.bytes + [device.isRandom ? 2 : 1]
        }

        /// The strength in an event, or why there is none; nil when the event answers something else.
        static func answer(_ event: [UInt8], from device: DeviceAddress) -> Result<Int, BluetoothError>? {
            func number(_ place: Int) -> UInt16 { UInt16(event[place]) | UInt16(event[place + 1]) << 8 }
            guard event.count >= 9, number(6) == getConnectionInformation else { return nil }
            let status = event[8]
            guard number(0) == commandComplete, status == 0 else {
                return number(0) == commandComplete || number(0) == commandStatus ? .failure(error(status)) : nil
            }
            guard event.count >= 17, Array(event[9..<15]) == device.bytes else { return nil }
            let strength = Int(Int8(bitPattern: event[16]))
            guard strength != invalidRSSI else {
                return .failure(
                    BluetoothError(
                        .notSupported, "The controller does not tell the signal's strength of the connection."))
            }
            return .success(strength)
        }

        /// - Parameter status: as in doc/mgmt-api.txt, "Error Codes".
        private static func error(_ status: UInt8) -> BluetoothError {
            switch status {
            case 0x02: BluetoothError(.notConnected, "The kernel has no connection to the peripheral (any more).")
            case 0x0F: BluetoothError(.notPoweredOn, "The adapter is switched off.")
            case 0x14: .noPermission
            default:
                BluetoothError(
                    .notSupported,
                    "The kernel does not tell the signal's strength of the connection: management status \(status).")
            }
        }

        /// A socket to ask through.
        static func open() throws(BluetoothError) -> FileDescriptor {
            let type = Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            let raw = socket(Int32(FERRY_AF_BLUETOOTH), type, Int32(FERRY_BTPROTO_HCI))
            guard raw >= 0 else { throw errno == EPERM || errno == EACCES ? .noPermission : L2CAPSocket.missing(errno) }
            let descriptor = FileDescriptor(owning: raw)
            var address = ferry_sockaddr_hci(
                family: UInt16(FERRY_AF_BLUETOOTH), device: 0xFFFF, channel: UInt16(FERRY_HCI_CHANNEL_CONTROL))
            let result = withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
                guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
                return bind(raw, pointer, socklen_t(bytes.count))
            }
            guard result == 0 else { throw errno == EPERM ? .noPermission : L2CAPSocket.missing(errno) }
            return descriptor
        }
    }

    extension BluetoothError {
        fileprivate static let noPermission = BluetoothError(
            .notSupported,
            "bluetoothd tells the signal's strength of advertisements only; the kernel tells that of a connection to "
                + "programs with CAP_NET_ADMIN: setcap cap_net_admin+ep PROGRAM, or AmbientCapabilities=CAP_NET_ADMIN in its "
                + "unit.")
    }

    extension BlueZEngine {
        /// Asks the kernel for the strength of a connection's signal.
        func askForRSSI(_ connection: BlueZConnection, _ waiter: Waiter<Int>) {
            do throws(BluetoothError) {
                try connection.requireConnection()
                guard let device = objects[connection.path, "org.bluez.Device1"].flatMap({ DeviceAddress($0) }),
                    let name = adapterPath?.split(separator: "/").last, let number = UInt16(name.dropFirst(3))
                else { throw connection.notConnected }
                let descriptor = try Management.open()
                let question = Management.question(number, device)
                // 0 when the kernel refuses: its answer says why.
                guard write(descriptor.rawValue, question, question.count) >= 0 else {
                    throw L2CAPSocket.missing(errno)
                }
                let finish: (Result<Int, BluetoothError>) -> Void = { [thread] outcome in
                    thread.unwatch(descriptor.rawValue)
                    waiter.resume(outcome)
                }
                let timer = thread.schedule(after: .seconds(5)) {
                    finish(
                        .failure(BluetoothError(.timedOut, "The kernel did not tell the signal's strength within 5 s."))
                    )
                }
                thread.watch(descriptor.rawValue, POLLIN) { [thread] _ in
                    // The socket tells of everything that happens; one packet is one event.
                    var bytes = [UInt8](repeating: 0, count: 1024)
                    let count = recv(descriptor.rawValue, &bytes, bytes.count, Int32(truncatingIfNeeded: MSG_DONTWAIT))
                    guard count > 0, let outcome = Management.answer(Array(bytes.prefix(count)), from: device) else {
                        return
                    }
                    thread.cancel(timer)
                    finish(outcome)
                }
            } catch {
                waiter.resume(.failure(error))
            }
        }
    }
#endif
