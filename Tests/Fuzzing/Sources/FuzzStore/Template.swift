import Ferry
import Foundation
import GRDB

@testable import FerryRecords

/// The stores that inputs change: with records in both directions, a relayed stream, a withdrawn record and a notice.
struct Template: Sendable {
    /// The bytes of a closed store's file.
    let strict: Data
    /// The same rows in tables without keys and constraints, which a stranger can make.
    let loose: Data
    /// The files of a store that was not closed, by what their names end with.
    let live: [String: Data]
    /// A healthy store, whose functions are given the rows.
    let store: RecordStore
    /// The same two in memory.
    let strictRows: DatabaseQueue
    let looseRows: DatabaseQueue

    static let ends = ["", "-wal", "-mark"]

    /// A folder in memory where there is one: each store that is opened is synced a few times.
    static let folder: String = {
        let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
        let folder = "\(parent)/ferry-fuzz-\(getpid())"
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        atexit { try? FileManager.default.removeItem(atPath: Template.folder) }
        return folder
    }()

    static let shared: Template = {
        do { return try wait { try await Template() } } catch { fatalError("no template: \(error)") }
    }()

    static var settings: GRDB.Configuration {
        var settings = GRDB.Configuration()
        settings.prepareDatabase { $0.add(function: Table.sum) }
        return settings
    }

    private init() async throws {
        let path = Self.folder + "/template"
        let made = try RecordStore.open(path)
        for number in 1...4 { try await made.append([UInt8(number)], to: "b", stream: "s") }
        try await made.append([9], to: "b", stream: "e", expires: Date(timeIntervalSince1970: 4e9))
        let last = try await made.append([5], to: "b", stream: "s")
        try await made.cancel(last, to: "b")
        _ = try await made.read { database, book in
            try made.notice("A notice.", about: "b", database)
            let epoch = Epoch(generation: 3, nonce: 5)
            let hello = RecordsMessage.Hello(store: StoreID(high: 2, low: 2), epoch: epoch, largestRecord: 1 << 20)
            let met = try made.meet(hello, PeerIdentity("b", certainty: .address), named: "b", database, &book)
            guard let peer = met.peer else { fatalError("A peer to whom something was sent is met as a stranger.") }
            for name in ["t", "ferry-relay:o:t"] {
                let stream = try made.position(of: name, from: peer, acknowledged: nil, database, &book).stream
                let items = (1...3 as ClosedRange<UInt64>).map {
                    let record = RelayedRecord(sequence: $0, time: $0, bytes: [UInt8($0)])
                    return RecordsMessage.Item(sequence: $0, bytes: record.encoded)
                }
                _ = try made.store(items, epoch, in: stream, database, &book)
            }
            for stream in book.outbound.keys {
                _ = try made.load(stream, after: 0, bytes: 1 << 16, database, &book)
                let position = Position(epoch: made.epoch, sequence: 1)
                _ = try made.acknowledge(position, of: stream, database, &book)
            }
        }
        live = try Dictionary(
            uniqueKeysWithValues: Self.ends.map { ($0, try Data(contentsOf: URL(fileURLWithPath: path + $0))) })
        await made.close()
        strict = try Data(contentsOf: URL(fileURLWithPath: path))
        let file = try DatabaseQueue(path: path)
        strictRows = try DatabaseQueue(configuration: Self.settings)
        try file.backup(to: strictRows)
        try await file.writeWithoutTransaction { database in
            for table in Table.all {
                try database.execute(
                    sql: """
                        CREATE TABLE loose AS SELECT * FROM \(table.name); DROP TABLE \(table.name);
                        ALTER TABLE loose RENAME TO \(table.name)
                        """)
            }
        }
        looseRows = try DatabaseQueue(configuration: Self.settings)
        try file.backup(to: looseRows)
        try file.close()
        loose = try Data(contentsOf: URL(fileURLWithPath: path))
        store = try RecordStore.open(Self.folder + "/healthy")
    }
}

/// Waits for asynchronous work outside of any task; 10 s at most, as libFuzzer's own limit.
func wait<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
    let done = DispatchSemaphore(value: 0)
    let result = Result<Value, any Error>.Holder()
    Task.detached {
        do { result.set(.success(try await body())) } catch { result.set(.failure(error)) }
        done.signal()
    }
    guard done.wait(timeout: .now() + 10) == .success else { fatalError("a store hangs") }
    return try result.get()
}

extension Result where Success: Sendable, Failure == any Error {
    final class Holder: @unchecked Sendable {
        private var result: Result?
        fileprivate func set(_ result: Result) { self.result = result }
        fileprivate func get() throws -> Success {
            guard let result else { preconditionFailure("the work has no result") }
            return try result.get()
        }
    }
}
