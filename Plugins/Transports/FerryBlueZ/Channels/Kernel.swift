#if BlueZ
    import Glibc

    /// What the running kernel's L2CAP does.
    enum Kernel {
        /// Whether credits return to the peer as its packets are read. Before Linux 6.10 ("compute LE flow credits based on
        /// recvbuf space") they returned as packets came, and what a full socket did not take was lost: there packets are
        /// read whether their owner has paused or not.
        static let returnsCreditsWhenRead: Bool = {
            var name = utsname()
            guard uname(&name) == 0 else { return false }
            func text(_ bytes: some Any) -> String {
                withUnsafeBytes(of: bytes) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            }
            return returnsCreditsWhenRead(release: text(name.release), version: text(name.version))
        }()

        /// - Parameters:
        ///   - release: as `uname -r` prints it.
        ///   - version: as `uname -v` prints it. Debian tells the whole number there: "Debian 6.1.192-2".
        static func returnsCreditsWhenRead(release: String, version: String) -> Bool {
            let full = version.firstRange(of: "Debian ").map { version[$0.upperBound...] } ?? release[...]
            let numbers =
                full.split(separator: "-", maxSplits: 1).first?.split(separator: ".").map { Int($0) ?? 0 } ?? []
            guard numbers.count >= 2 else { return false }
            // The stable series have it too since 2026; only the tried version of those is listed.
            if numbers[0] == 6, numbers[1] == 1 { return numbers.count > 2 && numbers[2] >= 192 }
            return (numbers[0], numbers[1]) >= (6, 10)
        }
    }
#endif
