import Ferry
import Foundation
import Synchronization

/// A file of every chunk that crosses a process's links, line by line as `ferry trace` reads it.
///
/// The disk is written to while a chunk is on its way: a log costs time, and what it tells of time includes that.
final class ChunkLogFile: Sendable {
    private struct State {
        var file: FileHandle?
        var buffer: [UInt8] = []
        var links = 0
    }

    /// One for the process, for each time that it connects.
    private static let files = Mutex<[String: ChunkLogFile]>([:])
    private let state: Mutex<State>
    private let time = SystemTime()
    private let start = SystemTime().now

    /// The process's log at a path, made when it is first asked for.
    ///
    /// - Throws: `invalidConfiguration` when the file cannot be made.
    static func shared(_ path: String, framing: String) throws(FerryError) -> ChunkLogFile {
        let result = files.withLock { files -> Result<ChunkLogFile, FerryError> in
            if let file = files[path] { return .success(file) }
            let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                return .failure(
                    FerryError(
                        .invalidConfiguration,
                        "The log '\(path)' cannot be written: \(String(cString: strerror(errno)))."))
            }
            let file = ChunkLogFile(FileHandle(fileDescriptor: descriptor, closeOnDealloc: true), framing)
            files[path] = file
            return .success(file)
        }
        return try result.get()
    }

    private init(_ file: FileHandle, _ framing: String) {
        state = Mutex(State(file: file, buffer: Array("# framing \(framing)\n".utf8)))
    }

    /// For the next link.
    func observer() -> any LinkObserver {
        let number = state.withLock { state in
            state.links += 1
            return state.links
        }
        let observer = Observer(log: self, link: "link\(number)")
        add(observer.link, "connected")
        return observer
    }

    private func add(_ link: String, _ event: String, _ chunk: [UInt8]? = nil) {
        let milliseconds = Double((time.now - start).wholeNanoseconds / 1_000) / 1_000
        var line = Array("\(milliseconds) ms  \(link)  \(event)".utf8)
        if let chunk {
            line += Array("  \(chunk.count) bytes  ".utf8)
            line.reserveCapacity(line.count + 2 * chunk.count + 1)
            for byte in chunk {
                line.append(Self.digits[Int(byte >> 4)])
                line.append(Self.digits[Int(byte & 15)])
            }
        }
        line.append(UInt8(ascii: "\n"))
        state.withLock { state in
            guard let file = state.file else { return }
            state.buffer += line
            // The lines logged are there when the process is killed.
            do {
                try file.write(contentsOf: state.buffer)
                state.buffer.removeAll(keepingCapacity: true)
            } catch {
                // A full disk ends the log, not the transfer.
                state.file = nil
                note("The log ends here: \(error.localizedDescription)")
            }
        }
    }

    private static let digits = Array("0123456789abcdef".utf8)

    /// What one link tells.
    private final class Observer: LinkObserver {
        private let log: ChunkLogFile
        let link: String
        private let isFull = Mutex(false)

        init(log: ChunkLogFile, link: String) {
            self.log = log
            self.link = link
        }

        func linkDidSend(_ chunk: RawSpan) {
            isFull.withLock { $0 = false }
            log.add(link, "sent", chunk.withUnsafeBytes { Array($0) })
        }

        func linkDidRefuse(_ chunk: RawSpan) {
            let wasFull = isFull.withLock { isFull in
                defer { isFull = true }
                return isFull
            }
            if !wasFull { log.add(link, "full: waiting for ready") }
        }

        func linkIsReady() { if isFull.withLock({ $0 }) { log.add(link, "ready") } }

        func linkDidReceive(_ chunk: RawSpan) { log.add(link, "received", chunk.withUnsafeBytes { Array($0) }) }

        func linkDidClose(_ reason: FerryError) { log.add(link, "ended: \(reason.message)") }
    }
}
