import Ferry
import Synchronization

/// The requests that wait for an answer, by their sequence number.
final class SMPRequestBook: Sendable {
    typealias Completion = @Sendable (Result<[UInt8], FerryError>) -> Void

    private struct Entry {
        let operation: SMPOperation
        let group: SMPGroup
        let command: UInt8
        let completion: Completion
        var timer: ScheduledTimer?
    }

    private struct State {
        var entries: [UInt8: Entry] = [:]
        var next: UInt8 = 0
        /// Numbers of requests that were given up, the oldest first: an answer may still come.
        var abandoned: [UInt8] = []
        var ending: FerryError?
    }

    /// The most numbers that are kept from use because a late answer may come.
    private static let maximumAbandoned = 128

    private let state = Mutex(State())

    /// Takes a number for a request; nil when all are in use, or the channel has ended: then the completion has been called.
    func begin(
        _ operation: SMPOperation, _ group: SMPGroup, _ command: UInt8, _ completion: @escaping Completion
    ) -> UInt8? {
        let outcome = state.withLock { state -> Result<UInt8, FerryError> in
            if let ending = state.ending { return .failure(ending) }
            for _ in 0...UInt8.max {
                let number = state.next
                state.next &+= 1
                guard state.entries[number] == nil, !state.abandoned.contains(number) else { continue }
                state.entries[number] = Entry(
                    operation: operation.response ?? operation, group: group, command: command, completion: completion)
                return .success(number)
            }
            return .failure(
                FerryError(
                    .queueFull, "\(state.entries.count) requests wait for answers; SMP numbers 256. Await some first.",
                    fate: .nothingSent))
        }
        switch outcome {
        case .success(let number): return number
        case .failure(let error):
            completion(.failure(error))
            return nil
        }
    }

    /// Keeps the timer that ends a request, or calls it off where the request has ended.
    func keep(_ timer: ScheduledTimer, for number: UInt8) {
        let isKept = state.withLock { state in
            state.entries[number]?.timer = timer
            return state.entries[number] != nil
        }
        if !isKept { timer.cancel() }
    }

    /// An answer came. One that belongs to no request is passed over: its request was given up.
    func answer(_ header: SMPHeader, _ message: [UInt8]) {
        let entry = state.withLock { state -> Entry? in
            state.abandoned.removeAll { $0 == header.sequence }
            guard let entry = state.entries[header.sequence], entry.operation == header.operation,
                entry.group == header.group, entry.command == header.command
            else { return nil }
            state.entries[header.sequence] = nil
            return entry
        }
        entry?.timer?.cancel()
        entry?.completion(.success(message))
    }

    /// Ends a request without an answer.
    func fail(_ number: UInt8, _ error: FerryError) {
        let entry = state.withLock { state -> Entry? in
            guard let entry = state.entries.removeValue(forKey: number) else { return nil }
            if error.fate != .nothingSent, error.fate != .takenBack { state.abandoned.append(number) }
            if state.abandoned.count > Self.maximumAbandoned { state.abandoned.removeFirst() }
            return entry
        }
        entry?.timer?.cancel()
        entry?.completion(.failure(error))
    }

    /// The channel has ended: no answer comes any more.
    func end(_ reason: FerryError) {
        let error = FerryError(
            reason.code, "The link ended before the server answered.", cause: reason, fate: .mayHaveArrived)
        let entries = state.withLock { state in
            state.ending = error
            defer { state.entries = [:] }
            return Array(state.entries.values)
        }
        for entry in entries {
            entry.timer?.cancel()
            entry.completion(.failure(error))
        }
    }
}
