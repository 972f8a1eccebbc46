// The C library's `stdout` is a variable, which no code here assigns.
#if canImport(Darwin)
    @preconcurrency import Darwin
#elseif canImport(Musl)
    @preconcurrency import Musl
#else
    @preconcurrency import Glibc
#endif

/// What `print` writes to, and does not tell of.
enum StandardOutput {
    /// Whether everything printed until now was written: not so on a full disk, or where there is no standard output.
    /// The buffer is written before.
    static func tookAll() -> Bool {
        // Also what failed before: on a terminal lines are written one by one, and nothing is left to write in the end.
        fflush(stdout) == 0 && ferror(stdout) == 0
    }

    static let problem = "Standard output cannot be written to."
}
