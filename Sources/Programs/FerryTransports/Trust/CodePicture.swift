#if Seal
    package import Foundation

    /// A one-time code as a picture in the terminal, where the program qrencode is installed.
    package enum CodePicture {
        /// Shows it on standard error, where that is a terminal. The code goes to the program by a pipe: other users see arguments.
        package static func show(_ code: String) {
            guard isatty(STDERR_FILENO) != 0, let picture = picture(of: code) else { return }
            FileHandle.standardError.write(picture)
        }

        /// The picture as text; nil where there is no such program, or it fails.
        package static func picture(
            of code: String, path: String = ProcessInfo.processInfo.environment["PATH"] ?? ""
        ) -> Data? {
            let program = path.split(separator: ":").map { "\($0)/qrencode" }.first {
                $0.hasPrefix("/") && FileManager.default.isExecutableFile(atPath: $0)
            }
            guard let program else { return nil }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = ["-t", "UTF8", "-m", "2", "-o", "-"]
            let (input, output) = (Pipe(), Pipe())
            process.standardInput = input
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            guard (try? process.run()) != nil else { return nil }
            // In capitals the picture is smaller: digits, capitals and dashes take 5.5 bits each.
            try? input.fileHandleForWriting.write(contentsOf: Data(code.uppercased().utf8))
            try? input.fileHandleForWriting.close()
            let data = try? output.fileHandleForReading.read(upToCount: 1 << 16)
            process.waitUntilExit()
            return process.terminationStatus == 0 ? data : nil
        }
    }
#endif
