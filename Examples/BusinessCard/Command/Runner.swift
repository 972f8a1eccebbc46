import ArgumentParser
import FerryTransports

/// Runs a command with a console, an ear for signals, and an exit status for every end.
///
/// 0 when all went well, 1 when not (the reason is on standard error), 64 for wrong usage (by the parser, before this),
/// 128 and the signal's number when interrupted: 130 for Ctrl-C.
enum Runner {
    static func run(_ body: @escaping @Sendable (Console) async throws -> Void) async throws {
        let console = Console.standardOutput()
        let (result, signal) = await Interruption.run(beforeExit: { console.endProgress() }) { try await body(console) }
        console.endProgress()
        if let signal {
            Console.complain("interrupted")
            throw ExitCode(128 + signal)
        }
        if case .failure(let error) = result {
            Console.complain(explanation(of: error))
            throw ExitCode.failure
        }
        if console.isBroken {
            Console.complain("standard output could not be written")
            throw ExitCode.failure
        }
    }
}
