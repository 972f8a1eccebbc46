import Ferry
import Foundation
import FuzzDriver
import GRDB

@testable import FerryRecords

/// Files of stores that SQLite opens and Ferry did not write, under libFuzzer.
///
/// The first byte of an input says which tables it changes, those of Ferry's schema or some without any constraint. What follows
/// is read by ``Mutation``, and then by what uses the store. Most inputs change rows in memory and give them to the functions that
/// read and write rows. One in 64, by a hash of the input, changes a file: its rows, its bytes, those of the -wal or of the -mark,
/// or writes a mark with any number and a right checksum; the store is opened, listed, read, drained, appended to and closed.
///
/// Nothing may trap or hang, and memory stays bounded. Errors are right.
enum Rows {
    /// One transaction, with the errors that `Committer` has for pieces and for all of it; it is always undone.
    static func run(_ input: inout Input) {
        let queue = input.byte() % 2 == 0 ? Template.shared.strictRows : Template.shared.looseRows
        try? queue.writeWithoutTransaction { database in
            try database.inTransaction(.immediate) {
                Mutation.apply(&input, to: database)
                do { try use(&input, database) } catch  where database.isInsideTransaction {}
                return .rollback
            }
        }
    }

    private static func use(_ input: inout Input, _ database: Database) throws {
        let store = Template.shared.store
        var book = try Book(database, Epoch(generation: 2, nonce: 9))
        for id in book.inbound.keys.sorted().prefix(8) {
            try piece {
                let page = try InboxDesk.read(id, after: 0, database, book)
                precondition(page.records.count <= 64, "a page of \(page.records.count) records")
            }
        }
        for id in book.outbound.keys.sorted().prefix(8) {
            let wanted = 1 << input.below(17)
            try piece {
                let loaded = try store.load(id, after: 0, bytes: wanted, database, &book)
                precondition(loaded.records.count <= 1024, "\(loaded.records.count) records are loaded")
            }
            let epoch = Epoch(generation: 1 + UInt64(input.below(3)), nonce: input.wireNumber())
            let position = Position(epoch: epoch, sequence: input.wireNumber())
            try piece { _ = try store.adopt(position, of: id, database, &book) }
            try piece { _ = try store.acknowledge(position, of: id, database, &book) }
        }
        for peer in book.peers.values.sorted(by: { $0.id < $1.id }).prefix(4) {
            let epoch = Epoch(generation: 1 + input.wireNumber() / 2, nonce: input.wireNumber())
            let hello = RecordsMessage.Hello(
                store: peer.store ?? StoreID(high: 3, low: 3), epoch: epoch, largestRecord: 1 << 20)
            let identity = PeerIdentity("b", certainty: .address)
            try piece { _ = try store.meet(hello, identity, named: peer.name, database, &book) }
            try piece { try store.checkOwn(epoch, by: peer.name, database, book) }
            for name in ["t", "ferry-relay:o:t", "new"] {
                try piece {
                    let position = Position(epoch: epoch, sequence: 4)
                    let stream = try store.position(
                        of: name, from: peer.id, acknowledged: position, database, &book
                    ).stream
                    let record = RelayedRecord(sequence: input.wireNumber(), time: 9, bytes: [1])
                    let item = RecordsMessage.Item(sequence: max(1, input.wireNumber()), bytes: record.encoded)
                    _ = try store.store([item], epoch, in: stream, database, &book)
                }
            }
        }
        try piece { _ = try RecordStore.withdrawExpired(at: input.number(), database, &book) }
        try book.writeEpoch(database)
        try book.write(database)
        try book.reload(database)
    }

    private static func piece(_ body: () throws -> Void) throws {
        do { try body() } catch let error where error is FerryError || error is Damage {
            _ = storeError(error, at: "rows").message
        }
    }
}

/// Whole files.
enum Files {
    static func run(_ input: Input) {
        var input = input
        let template = Template.shared
        let path = Template.folder + "/store"
        defer { for end in Template.ends + ["-lock", "-reserve", "-shm", "-journal"] { unlink(path + end) } }
        do {
            let isLoose = input.byte() % 2 == 1
            switch input.below(4) {
            case 0, 1:
                try write(isLoose ? template.loose : template.strict, path)
                let queue = try DatabaseQueue(path: path, configuration: Template.settings)
                try queue.write { Mutation.apply(&input, to: $0) }
                try queue.close()
                if input.byte() % 2 == 0 { try write(template.live["-mark"] ?? Data(), path + "-mark") }
            case 2:
                let flipped = Template.ends[input.below(3)]
                for (end, data) in template.live {
                    var data = data
                    if end == flipped { for _ in 0...input.below(8) { flip(&data, &input) } }
                    try write(data, path + end)
                }
            default:
                for (end, data) in template.live { try write(data, path + end) }
                let mark = Mark(of: path, StoreID(mark: path), Epoch(generation: input.wireNumber(), nonce: 1))
                mark.write(
                    (0...input.below(4)).map { _ in
                        Mark.Entry(
                            direction: input.byte() % 2 == 0 ? .outbound : .inbound,
                            stream: Int64(input.below(8)), last: UInt64(bitPattern: input.number()))
                    })
            }
            try wait { try await use(path) }
        } catch { _ = "\(error)" }
    }

    private static func write(_ data: Data, _ path: String) throws { try data.write(to: URL(fileURLWithPath: path)) }

    /// Most of a file is room for the next records: places are drawn until one has something.
    private static func flip(_ data: inout Data, _ input: inout Input) {
        guard !data.isEmpty else { return }
        var place = Int(input.wireNumber() % UInt64(data.count))
        for _ in 0..<64 where data[place] == 0 { place = (place * 31 + 7) % data.count }
        data[place] ^= max(1, input.byte())
    }

    @concurrent private static func use(_ path: String) async throws {
        let store = try RecordStore.open(path, configuration: configuration)
        // What is said to have arrived and is not there never comes: closing ends the reader.
        let reader = Task.detached {
            for try await record in store.inbox { try await record.done() }
        }
        await attempt { _ = try await store.notices() }
        await attempt { _ = try await store.peers() }
        await attempt { _ = try await (store.undone(), store.undoneBytes()) }
        var peers = ["b"]
        await attempt {
            for stream in try await store.waiting() {
                peers.append(stream.peer)
                await attempt {
                    for record in try await store.records(to: stream.peer, stream: stream.stream) {
                        _ = try await store.receipt(of: record.id, to: stream.peer)
                    }
                }
            }
        }
        for peer in Set(peers).sorted().prefix(4) {
            await attempt { try await store.append([7], to: peer, stream: "s", whenFull: .refuse) }
            await attempt {
                try await store.read { database, book in
                    for id in book.outboundOfPeer[book.peerNames[peer] ?? 0] ?? [] {
                        let loaded = try store.load(id, after: 0, bytes: 1 << 16, database, &book)
                        guard let last = loaded.records.last else { continue }
                        let position = Position(epoch: last.epoch, sequence: last.item.sequence)
                        _ = try store.acknowledge(position, of: id, database, &book)
                    }
                }
            }
        }
        await attempt { _ = try await store.expire() }
        await attempt { try await store.forgetIdentity(of: "b") }
        await store.close()
        _ = await reader.result
    }

    private static var configuration: RecordStore.Configuration {
        var configuration = RecordStore.Configuration()
        configuration.largestRecord = 1024
        return configuration
    }

    private static func attempt(_ body: () async throws -> Void) async {
        do { try await body() } catch { _ = "\(error)" }
    }
}

extension StoreID {
    /// The store of a file of marks.
    fileprivate init(mark path: String) { self = Mark.read(of: path)?.store ?? StoreID(high: 0, low: 0) }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: bytes, count: count))
    // FNV-1a. Were it a byte of the input, libFuzzer would soon have more files than rows.
    var hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    // The last bytes are in its low bits only.
    hash = (hash ^ hash >> 33) &* 0xFF51_AFD7_ED55_8CCD
    var input = Input(bytes)
    if hash >> 58 == 0 { Files.run(input) } else { Rows.run(&input) }
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
