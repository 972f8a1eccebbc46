#if HCI
    import FerryBluetooth
    import Foundation

    /// A serial line, or a pseudo-terminal, that carries H4 (Core Specification 5.4, Vol 4, Part A): 8 data bits, no parity,
    /// RTS and CTS.
    enum SerialLine {
        /// Speeds that a line can have, in bits a second, and the system's names for them.
        static let speeds: [Int: speed_t] = {
            let names = [
                9600: B9600, 19_200: B19200, 38_400: B38400, 57_600: B57600, 115_200: B115200, 230_400: B230400,
            ]
            #if os(Linux)
                return names.mapValues { speed_t($0) }.merging([
                    460_800: speed_t(B460800), 921_600: speed_t(B921600), 1_000_000: speed_t(B1000000),
                    1_500_000: speed_t(B1500000), 2_000_000: speed_t(B2000000), 3_000_000: speed_t(B3000000),
                    4_000_000: speed_t(B4000000),
                ]) { first, _ in first }
            #else
                return names.mapValues { speed_t($0) }
            #endif
        }()

        /// Opens and sets up a line; the caller owns the descriptor.
        static func open(_ path: String, speed: Int) throws(BluetoothError) -> Int32 {
            guard let name = speeds[speed] else {
                throw BluetoothError(
                    .invalidArgument,
                    "A serial line has no speed of \(speed) bits a second. Use one of: "
                        + "\(speeds.keys.sorted().map(String.init).joined(separator: ", ")).")
            }
            let descriptor = Foundation.open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else {
                let hint = errno == EACCES ? " It usually needs the group dialout." : ""
                throw BluetoothError(
                    .notPoweredOn,
                    "The serial line \(path) cannot be opened: \(String(cString: strerror(errno))).\(hint)")
            }
            var settings = termios()
            guard tcgetattr(descriptor, &settings) == 0 else {
                close(descriptor)
                throw BluetoothError(.notPoweredOn, "\(path) is no serial line: \(String(cString: strerror(errno))).")
            }
            cfmakeraw(&settings)
            settings.c_cflag |= tcflag_t(CREAD | CLOCAL) | tcflag_t(CRTSCTS)
            cfsetspeed(&settings, name)
            guard tcsetattr(descriptor, TCSANOW, &settings) == 0 else {
                let reason = String(cString: strerror(errno))
                close(descriptor)
                throw BluetoothError(
                    .notPoweredOn, "The serial line \(path) does not take \(speed) bits a second: \(reason).")
            }
            tcflush(descriptor, TCIOFLUSH)
            return descriptor
        }
    }
#endif
