import Foundation

/// Reports a misused and ignored call to the programmer: one line on standard error, as Apple's logs do.
enum Misuse {
    /// Where the lines go. For tests.
    static let sink = Guarded<@Sendable (String) -> Void>(standardError)

    static let standardError: @Sendable (String) -> Void = { line in
        FileHandle.standardError.write(Data(("[CoreBluetooth] API MISUSE: " + line + "\n").utf8))
    }

    static func report(_ line: @autoclosure () -> String) { sink.current(line()) }
}
