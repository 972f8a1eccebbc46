import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import FoundationEssentials

/// How commands end: 0; 1 for what went wrong, a file that is not there among it; 64 (EX_USAGE) for arguments that are wrong in
/// themselves; 128 and the signal's number after a signal.
enum CommandEnd {
    /// An error that ended a command, in the words of the layer that noticed, for a terminal.
    static func words(for error: any Error) -> any Error {
        switch error {
        case is ExitCode, is CleanExit, is ValidationError, is CommandFailure: error
        case let error as FerryError: CommandFailure(error.message)
        case let error as BluetoothError: CommandFailure(error.words)
        case is CocoaError, is DecodingError: CommandFailure("A file cannot be used: \(FileProblem.text(error)).")
        // The argument parser's own, by which it shows help: its type is not public.
        case _ where FerryCommand.exitCode(for: error) == .success: error
        default: CommandFailure("\(error)")
        }
    }

    /// An error in the arguments: wrong usage, unless it is of a file.
    static func usage(_ error: FerryError) -> any Error {
        error.code == .unreadableFile ? CommandFailure(error.message) : ValidationError(error.message)
    }

    /// Refuses an argument that is not UTF-8, which would be taken for another one.
    ///
    /// - Throws: `ValidationError`.
    static func checkArguments(_ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) throws {
        var index = 1
        while let argument = arguments[index] {
            if String(validatingCString: argument) == nil {
                throw ValidationError(
                    "Argument \(index) is not UTF-8: '\(String(cString: argument).forTerminal)'. Name its folder instead."
                )
            }
            index += 1
        }
    }
}
