import Ferry
import FuzzDriver

@testable import FerryRecords

/// One session of the records protocol and a peer made of arbitrary bytes, under libFuzzer.
///
/// An input is a list of steps, each a byte and what it needs:
///
///     0...31     a message of the peer's, of as many bytes as the next byte says
///     32...127   a message of the peer's with a right form: that modulo 8 is its kind, and the bytes that follow its fields
///     128...151  up to that less 127 messages are sent
///     152...183  up to that less 151 requests are carried out, as a store does
///     184...207  records are appended to one of four streams, in the present epoch or an earlier one
///     208...223  the next deadline comes
///     224...239  the app is done with records
///     240...247  this side ends the exchange
///     248...255  the store was slow: time passes
///
/// Nothing may trap. What a peer can make grow is bounded, and no record is forgotten that was not sent.
struct Play {
    private var session: RecordsSession
    private var now = Timestamp.zero
    private var requests: [RecordsSession.Request] = []
    private var streams: [Int64: Stream] = [:]
    /// The costs of the records that the app has not done.
    private var undone: [Int] = []
    private var names = 0
    private var isOver = false

    private struct Stream {
        var epoch: UInt64 = 1
        var last: UInt64 = 0
        var waiting: [RecordsSession.Loaded] = []
        /// The last that was loaded, and so may have been sent.
        var loaded: UInt64 = 0
        var isKnown = false
        var acknowledged: UInt64 = 0
    }

    private static let configuration: RecordsSession.Configuration = {
        var configuration = RecordsSession.Configuration()
        configuration.largestRecord = 64
        configuration.capacity = 1024
        configuration.batch = 32
        configuration.largestReadAhead = 128
        return configuration
    }()
    private static let epoch = Epoch(generation: 3, nonce: 5)

    init() {
        session = RecordsSession(
            store: StoreID(high: 1, low: 1), epoch: Self.epoch, configuration: Self.configuration, at: now)
    }

    mutating func run(_ input: [UInt8]) {
        var rest = input[...]
        while let step = rest.popFirst() {
            do throws(FerryError) { try take(step, &rest) } catch {
                isOver = true
                session.end(.protocolError, error.message)
            }
            collect()
            if isOver { break }
        }
        // Whatever it was at, it ends: with what it owes the store, and its farewell.
        session.end(.other, "")
        for case .acknowledge(let stream, let position) in session.takeUnforgotten() { forget(stream, position) }
        for count in 0... {
            guard session.nextMessage(at: now) != nil else { break }
            precondition(count < 3, "after its end the session goes on")
        }
    }

    private mutating func take(_ step: UInt8, _ rest: inout ArraySlice<UInt8>) throws(FerryError) {
        switch step {
        case 0..<32:
            let count = Int(rest.popFirst() ?? 0)
            let message = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            try session.receive(message, at: now)
        case 32..<128: try session.receive(message(step % 8, &rest), at: now)
        case 128..<152: for _ in 127..<step { _ = session.nextMessage(at: now) }
        case 152..<184: for _ in 151..<step where !requests.isEmpty { carryOut(requests.removeFirst()) }
        case 184..<208:
            let id = Int64(step % 4)
            let count = Int(rest.popFirst() ?? 0)
            append(count % 16, of: count % 80, to: id, isOld: step < 190)
        case 208..<224:
            if let deadline = session.nextDeadline { now = max(now, deadline) }
            try session.wake(at: now)
        case 224..<240:
            let done = undone.prefix(Int(step - 223))
            undone.removeFirst(done.count)
            session.released(done.reduce(0, +))
        case 240..<248:
            session.end(.done, "")
            isOver = true
        default:
            now = now + .seconds(Int(step) - 247)
            session.left(after: .seconds(1))
        }
    }

    /// A message of the right form, with fields from the input: small numbers, and now and then the largest.
    private mutating func message(_ kind: UInt8, _ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        func number() -> UInt64 {
            let byte = rest.popFirst() ?? 0
            return byte < 250 ? UInt64(byte % 64) : RecordsMessage.largestNumber - UInt64(255 - byte)
        }
        func epoch() -> Epoch { Epoch(generation: max(1, number() % 8), nonce: number() % 8) }
        func position() -> Position? {
            let byte = rest.popFirst() ?? 0
            return byte < 64 ? nil : Position(epoch: byte < 160 ? Self.epoch : epoch(), sequence: max(1, number()))
        }
        let index = Int(number() % 5)
        let message: RecordsMessage
        switch kind {
        case 0, 1:
            message = .hello(
                .init(
                    store: StoreID(high: 2, low: 2), epoch: Epoch(generation: 4, nonce: 4),
                    largestRecord: Int(number())))
        case 2: message = .met(seen: position()?.epoch, granted: number() << 8 & RecordsMessage.largestNumber)
        case 3:
            names += 1
            message = .open(index: names - 1, name: "\(names - Int(number() % 16 / 15))", acknowledged: position())
        case 4: message = .position(index: index, position())
        case 5, 6:
            let previous = number()
            var sequence = previous
            let items = (0...Int(number() % 4)).map { _ in
                sequence = min(RecordsMessage.largestNumber, sequence + 1)
                return RecordsMessage.Item(sequence: sequence, bytes: [UInt8](repeating: 1, count: Int(number() % 70)))
            }
            message = .records(index: index, epoch: epoch(), previous: previous, items)
        default:
            let granted = number() << 8 & RecordsMessage.largestNumber
            let count = Int(number() % 5)
            let through = (0..<count).map {
                RecordsMessage.Acknowledgement(index: (index + $0) % 5, sequence: number())
            }
            message = .committed(granted: granted, through: through)
        }
        return message.encoded
    }

    // MARK: The store

    private mutating func collect() {
        requests += session.takeRequests()
        // One each of meeting and checking, of each stream that the peer opens at most its search and what was granted, and of each
        // own stream at most a load, a position and an acknowledgement.
        let stored = Self.configuration.capacity / RecordsMessage.cost(of: 0)
        precondition(requests.count <= 2 + 256 + stored + 3 * streams.count, "\(requests.count) requests wait")
    }

    private mutating func append(_ count: Int, of size: Int, to id: Int64, isOld: Bool) {
        var stream = streams[id] ?? Stream()
        guard stream.waiting.count < 256 else { return }
        if !isOld { stream.epoch = Self.epoch.generation }
        let epoch = Epoch(generation: stream.epoch, nonce: stream.epoch == Self.epoch.generation ? Self.epoch.nonce : 1)
        for _ in 0..<count {
            stream.last += 1
            let item = RecordsMessage.Item(sequence: stream.last, bytes: [UInt8](repeating: 7, count: size))
            stream.waiting.append(.init(epoch: epoch, item: item))
        }
        streams[id] = stream
        if session.isAdmitted { offer(id) }
    }

    private mutating func offer(_ id: Int64) {
        session.offer(id, name: "s\(id)", priority: UInt8(id), acknowledged: nil)
    }

    private mutating func carryOut(_ request: RecordsSession.Request) {
        switch request {
        case .meet:
            session.admit(seen: nil, stored: 0)
            for id in streams.keys.sorted() { offer(id) }
        case .check: break
        case .find(let index, _, _): session.found(nil, of: index)
        case .store(let index, _, let items):
            let cost = items.reduce(0) { $0 + RecordsMessage.cost(of: $1.bytes.count) }
            undone += items.map { RecordsMessage.cost(of: $0.bytes.count) }
            precondition(undone.reduce(0, +) <= Self.configuration.capacity, "more is kept than was granted")
            session.stored(index, through: items.last?.sequence ?? 0, cost: cost, kept: cost)
        case .adopt(let id, let position):
            // What the store checks itself.
            guard let position, position.epoch == Self.epoch, let loaded = streams[id]?.loaded else { return }
            if position.sequence <= loaded { forget(id, position) }
        case .load(let id, let after, let bytes):
            var total = 0
            var records: [RecordsSession.Loaded] = []
            for record in streams[id]?.waiting ?? [] where record.item.sequence > after && total < bytes {
                records.append(record)
                total += record.item.bytes.count + 4
            }
            let loaded = max(streams[id]?.loaded ?? 0, records.last?.item.sequence ?? 0)
            streams[id]?.loaded = loaded
            session.loaded(records, of: id)
        case .acknowledge(let id, let position):
            forget(id, position)
            session.forgotten(of: id)
        }
    }

    private mutating func forget(_ id: Int64, _ position: Position) {
        guard var stream = streams[id] else { preconditionFailure("a stream that there is not") }
        precondition((1...stream.loaded).contains(position.sequence), "\(position.sequence) was not sent")
        stream.acknowledged = max(stream.acknowledged, position.sequence)
        stream.waiting.removeAll {
            $0.item.sequence <= position.sequence && $0.epoch.generation <= position.epoch.generation
        }
        streams[id] = stream
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var play = Play()
    play.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
