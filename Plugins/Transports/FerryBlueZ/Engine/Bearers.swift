#if BlueZ
    import Glibc

    /// How many ATT bearers bluetoothd uses for one connection (Core Specification 5.4, Vol 3, Part F, 3.2.11), which none of
    /// its interfaces tells: what its configuration says, or what its version does by itself.
    ///
    /// On several it delivers values in another order than they were sent in (BlueZ 5.66).
    enum Bearers {
        /// - Parameters:
        ///   - configuration: the text of main.conf; nil when it cannot be read.
        ///   - modalias: the adapter's, which has BlueZ's version unless it is configured otherwise.
        static func count(configuration: String?, modalias: String?) -> Int {
            configured(in: configuration ?? "") ?? standard(of: modalias ?? "")
        }

        /// `Channels` under `[GATT]`: the last one, as GLib reads its key files, which takes nothing from a file with an error.
        private static func configured(in text: String) -> Int? {
            var group: Substring?, found: Int?
            for line in text.split(whereSeparator: \.isNewline) {
                let line = trimmed(line)
                guard let first = line.first, first != "#" else { continue }
                if first == "[" {
                    guard line.last == "]" else { return nil }
                    group = line.dropFirst().dropLast()
                    continue
                }
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
                guard group != nil, parts.count == 2 else { return nil }
                if group == "GATT", parts[0] == "Channels" { found = Int(parts[1]).flatMap { $0 >= 1 ? $0 : nil } }
            }
            return found
        }

        /// 1 since BlueZ 5.67 (bluetoothd's commit "main: Disable EATT by default"), 3 before; 3 when it is not known.
        private static func standard(of modalias: String) -> Int {
            // "usb:v1D6Bp0246d0542" is the Linux Foundation's BlueZ 5.66.
            guard modalias.contains("v1D6Bp0246d"), let version = Int(modalias.suffix(4), radix: 16) else { return 3 }
            return version >= 0x0543 ? 1 : 3
        }

        private static func trimmed(_ text: Substring) -> Substring {
            var text = text
            while text.first?.isWhitespace == true { text.removeFirst() }
            while text.last?.isWhitespace == true { text.removeLast() }
            return text
        }

        /// The text of a file of at most 1 MiB; nil when it cannot be read.
        static func read(_ path: String) -> String? {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { return nil }
            defer { Glibc.close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20), length = 0
            while length < bytes.count {
                let count = bytes[length...].withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 else { break }
                length += count
            }
            return String(decoding: bytes[..<length], as: UTF8.self)
        }
    }
#endif
