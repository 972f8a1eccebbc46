#if os(Linux)
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// What this process holds, as the kernel counts it (proc(5)).
    package enum ProcessMemory {
        /// Bytes in memory at present.
        package static var resident: Int { get throws { try status("VmRSS:") } }
        /// The most bytes since ``forgetPeak()``.
        package static var peak: Int { get throws { try status("VmHWM:") } }

        /// Sets the high-water mark back to what is held now.
        package static func forgetPeak() throws {
            guard let control = fopen("/proc/self/clear_refs", "w") else { throw Unknown() }
            fputs("5\n", control)
            fclose(control)
        }

        /// Whether a sanitizer keeps its books in this process, in memory.
        package static let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

        private struct Unknown: Error {}

        private static func status(_ field: String) throws -> Int {
            guard let file = fopen("/proc/self/status", "r") else { throw Unknown() }
            defer { fclose(file) }
            var line = [CChar](repeating: 0, count: 256)
            while fgets(&line, Int32(line.count), file) != nil {
                let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
                guard text.hasPrefix(field) else { continue }
                guard let kibibytes = Int(text.split(whereSeparator: \.isWhitespace)[1]) else { throw Unknown() }
                return kibibytes * 1024
            }
            throw Unknown()
        }
    }
#endif
