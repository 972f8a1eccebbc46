#if canImport(Glibc)
    import Glibc

    /// A line of /proc/self/status in bytes (proc_pid_status(5)).
    func status(_ name: String) -> Int? {
        guard let file = fopen("/proc/self/status", "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, CInt(line.count), file) != nil {
            let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .split(whereSeparator: \.isWhitespace)
            if words.count >= 2, words[0] == name { return Int(words[1]).map { $0 << 10 } }
        }
        return nil
    }

    /// Forgets the peak of resident memory (proc_pid_clear_refs(5)).
    func resetPeak() {
        guard let file = fopen("/proc/self/clear_refs", "w") else { return }
        fputs("5", file)
        fclose(file)
    }
#else
    func status(_ name: String) -> Int? { nil }
    func resetPeak() {}
#endif
