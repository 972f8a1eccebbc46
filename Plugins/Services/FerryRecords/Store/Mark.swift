#if Records
    import Ferry
    import Foundation
    import Synchronization

    /// How far each stream was, in a file beside the store: it is written after each commit and before the commit is told, so
    /// that a log which was damaged, cut or deleted since is noticed. Never synced: the file may be behind the store where the
    /// machine has lost its power, and is never ahead of it. `Documentation/Records.md` has its bytes.
    final class Mark: Sendable {
        enum Direction: Int, Sendable {
            case outbound = 0
            case inbound = 1

            /// The largest number that a store gives.
            fileprivate var largest: UInt64 {
                switch self {
                case .outbound: RecordsMessage.largestNumber
                case .inbound: UInt64(StreamLimit.number)
                }
            }
        }

        /// How far one stream was.
        struct Entry: Sendable, Hashable {
            let direction: Direction
            /// The stream's row.
            let stream: Int64
            /// The last sequence that was given, or the last number of a record that arrived.
            let last: UInt64
        }

        /// What a file says.
        struct Content: Sendable {
            let store: StoreID
            /// The last opening that a record or a peer knows.
            let generation: UInt64
            let entries: [Entry]
        }

        private enum File {
            case closed
            case open(Int32)
            /// It cannot be written; it says what it said before.
            case failed
        }

        private let path: String
        private let store: StoreID
        private let generation: UInt64
        private let file = Mutex(File.closed)

        /// The most rows of a direction, as many as a store has.
        private static let streams: Int64 = 1 << 20
        private static let slot = 32
        private static let header = 64
        private static let magic: UInt64 = 0x4D72_7972_7265_4601

        static func path(of store: String) -> String { store + "-mark" }

        init(of store: String, _ id: StoreID, _ epoch: Epoch) {
            path = Self.path(of: store)
            self.store = id
            generation = epoch.generation
        }

        deinit {
            if case .open(let descriptor) = file.withLock({ $0 }) { Foundation.close(descriptor) }
        }

        /// Notes the committed positions. Where the file cannot be written, as on a full disk, it stays behind.
        func write(_ entries: [Entry]) {
            file.withLock { file in
                if case .closed = file { file = open() }
                guard case .open(let descriptor) = file else { return }
                for entry in entries where (1...Self.streams).contains(entry.stream) {
                    var bytes: [UInt8] = []
                    bytes.reserveCapacity(Self.slot)
                    Self.append(entry.last, to: &bytes)
                    Self.append(store.high, to: &bytes)
                    Self.append(store.low, to: &bytes)
                    Self.append(UInt64(bitPattern: Self.checksum(bytes, entry.direction, entry.stream)), to: &bytes)
                    _ = pwrite(descriptor, bytes, bytes.count, off_t(Self.offset(entry.direction, entry.stream)))
                }
            }
        }

        private func open() -> File {
            let old = Self.read(path)
            let descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { return .failed }
            // What it says of another store that was here is over.
            if old?.store != store { _ = ftruncate(descriptor, 0) }
            var bytes: [UInt8] = []
            for number in [Self.magic, store.high, store.low, max(generation, old?.generation ?? 0)] {
                Self.append(number, to: &bytes)
            }
            Self.append(UInt64(bitPattern: Self.checksum(bytes)), to: &bytes)
            _ = pwrite(descriptor, bytes, bytes.count, 0)
            return .open(descriptor)
        }

        /// What the file of a store says; `nil` when there is none, or its beginning is damaged.
        static func read(of store: String) -> Content? { read(path(of: store)) }

        private static func read(_ path: String) -> Content? {
            let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard descriptor >= 0 else { return nil }
            defer { Foundation.close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            var count = pread(descriptor, &bytes, header, 0)
            guard count == header || count == 40 else { return nil }
            let (first, high, low) = (number(bytes, 0), number(bytes, 8), number(bytes, 16))
            let generation = number(bytes, 24)
            guard first == magic, number(bytes, 32) == UInt64(bitPattern: checksum(Array(bytes[0..<32]))) else {
                return nil
            }
            var entries: [Entry] = []
            var offset = header
            // No further than a store has streams: the file may be larger.
            let end = header + Int(streams) * 2 * slot
            while offset < end {
                count = pread(descriptor, &bytes, bytes.count, off_t(offset))
                guard count >= slot else { break }
                for place in stride(from: 0, through: count - slot, by: slot) {
                    let index = (offset - header + place) / slot
                    let (last, sum) = (number(bytes, place), number(bytes, place + 24))
                    guard last > 0, number(bytes, place + 8) == high, number(bytes, place + 16) == low,
                        let direction = Direction(rawValue: index % 2), last <= direction.largest
                    else { continue }
                    let stream = Int64(index / 2 + 1)
                    guard sum == UInt64(bitPattern: checksum(Array(bytes[place..<place + 24]), direction, stream))
                    else {
                        continue
                    }
                    entries.append(Entry(direction: direction, stream: stream, last: last))
                }
                offset += count / slot * slot
            }
            return Content(store: StoreID(high: high, low: low), generation: generation, entries: entries)
        }

        private static func offset(_ direction: Direction, _ stream: Int64) -> Int {
            header + (Int(stream - 1) * 2 + direction.rawValue) * slot
        }

        private static func checksum(_ bytes: [UInt8], _ direction: Direction? = nil, _ stream: Int64 = 0) -> Int64 {
            var checksum = RowChecksum(.mark)
            checksum.add(bytes)
            checksum.add(direction.map { Int64($0.rawValue) })
            checksum.add(stream)
            return checksum.column
        }

        private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }

        private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
            (0..<8).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
        }
    }
#endif
