#if Observability && NATS && Records
    import Dispatch
    import Foundation
    import Logging
    import Synchronization

    /// How a line of a log is written.
    enum LogFormat: String, CaseIterable {
        /// For people:
        ///
        ///     2026-11-24T09:12:01.250Z warning: Records are put off: The stream is full. gateway=g1 reason=natsStreamFull records=20
        case text
        /// For programs: one JSON object, with `time`, `level`, `message`, and texts by their names in `metadata`.
        case json

        func line(_ date: Date, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> String {
            switch self {
            case .text: textLine(date, level, message, metadata)
            case .json: jsonLine(date, level, message, metadata)
            }
        }

        /// Stands in the place of lines that were dropped.
        func dropped(_ count: Int, _ date: Date) -> String {
            let words = "\(count) lines are left out here: they were not read in time"
            return switch self {
            case .text: "(\(words))\n"
            case .json: jsonLine(date, .warning, words, [:])
            }
        }

        private struct Line: Encodable {
            let time: String
            let level: String
            let message: String
            let metadata: [String: String]
        }

        private func jsonLine(
            _ date: Date, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata
        ) -> String {
            let line = Line(
                time: Self.time(date), level: level.rawValue, message: message, metadata: metadata.mapValues { "\($0)" }
            )
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            // Texts and nothing else: there is nothing that it could refuse.
            let data = (try? encoder.encode(line)) ?? Data()
            return String(decoding: data, as: UTF8.self) + "\n"
        }

        private func textLine(
            _ date: Date, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata
        ) -> String {
            let words = metadata.sorted { $0.key < $1.key }.map { " \($0)=\(Self.quoted("\($1)"))" }.joined()
            return "\(Self.time(date)) \(level): \(Self.oneLine(message))\(words)\n"
        }

        private static func time(_ date: Date) -> String {
            date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        }

        /// Peers choose their names: none of them begins a new line.
        private static func oneLine(_ text: String) -> String {
            guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
                return text
            }
            return text.unicodeScalars.map {
                $0.properties.generalCategory == .control ? $0.escaped(asASCII: true) : String($0)
            }.joined()
        }

        private static func quoted(_ text: String) -> String {
            let isPlain = !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0 != "\"" && $0 != "=" }
            return oneLine(isPlain ? text : text.debugDescription)
        }
    }

    /// Lines of swift-log on standard error. It never blocks: up to 1000 lines wait to be written, and a line tells how many were dropped.
    struct LogLines: LogHandler {
        var logLevel = Logger.Level.info
        var metadata: Logger.Metadata = [:]
        var metadataProvider: Logger.MetadataProvider?
        private let writer: LineWriter

        init(_ writer: LineWriter) { self.writer = writer }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            var all = metadata
            if let more = metadataProvider?.get() { all.merge(more) { $1 } }
            if let more = event.metadata { all.merge(more) { $1 } }
            writer.write(writer.format.line(Date(), event.level, "\(event.message)", all).harmless)
        }
    }

    /// Writes lines to a descriptor, on its own queue.
    final class LineWriter: Sendable {
        private struct State {
            var waiting = 0
            var leftOut = 0
        }

        let format: LogFormat
        private let descriptor: Int32
        private let most: Int
        private let queue = DispatchQueue(label: "ferry.log")
        private let state = Mutex(State())

        init(_ descriptor: Int32 = STDERR_FILENO, most: Int = 1000, format: LogFormat = .text) {
            self.format = format
            self.descriptor = descriptor
            self.most = most
        }

        /// How many lines wait.
        var waiting: Int { state.withLock { $0.waiting } }

        func write(_ line: String) {
            let leftOut = state.withLock { state -> Int? in
                guard state.waiting < most else {
                    state.leftOut += 1
                    return nil
                }
                state.waiting += 1
                defer { state.leftOut = 0 }
                return state.leftOut
            }
            guard let leftOut else { return }
            queue.async { [self] in
                if leftOut > 0 { put(format.dropped(leftOut, Date())) }
                put(line)
                state.withLock { $0.waiting -= 1 }
            }
        }

        /// Waits until what came before is written, a second at most.
        func flush() {
            let isDone = DispatchSemaphore(value: 0)
            queue.async { isDone.signal() }
            _ = isDone.wait(timeout: .now() + 1)
        }

        private func put(_ line: String) {
            var rest = Array(line.utf8)[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
                guard count > 0 || errno == EINTR else { return }
                rest = rest.dropFirst(max(0, count))
            }
        }
    }
#endif
