import Ferry

/// Tells people what a command waits for.
enum WaitNotice {
    /// Says the text on standard error, unless the timer is cancelled within half a second.
    static func schedule(_ text: String) -> ScheduledTimer {
        let time = SystemTime()
        return time.schedule(at: time.now + .milliseconds(500)) { note("ferry: \(text)") }
    }

    /// How long a wait lasts, for the middle of a sentence.
    static func limit(_ timeout: Duration) -> String { "for up to \(TransferReport.time(timeout / .seconds(1)))" }
}
