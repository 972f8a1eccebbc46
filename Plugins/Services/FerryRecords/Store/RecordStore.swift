#if Records
    import Ferry
    import Foundation
    import GRDB
    import Synchronization

    /// An outbox and an inbox in one file: what ``append(_:to:stream:priority:expires:whenFull:)`` has accepted arrives in the
    /// other store's ``inbox`` once and in order, across crashes and however long the peer is away.
    ///
    ///     let store = try RecordStore.open("readings.ferry")
    ///     try await store.append(Array("21.5".utf8), to: "collector", stream: "temperature")
    ///     try await store.exchange(over: channel, with: "collector")
    ///
    /// One process at a time has it open. `Documentation/Records.md` has the format of the file, the protocol, and the limits.
    public final class RecordStore: Sendable {
        /// The bounds of a store.
        public struct Configuration: Sendable, Hashable {
            /// The largest record, in bytes, of either direction. Default 1 MiB.
            public var largestRecord = 1 << 20
            /// The pending bytes for one peer at which appending waits or refuses. Default 256 MiB.
            public var highWaterBytes = 256 << 20
            /// The pending bytes for one peer at which appending resumes. Default 192 MiB.
            public var lowWaterBytes = 192 << 20
            /// The pending records for one peer at which appending waits or refuses. Default 2^21.
            public var highWaterRecords = 1 << 21
            /// The pending records for one peer at which appending resumes. Default 3 · 2^19.
            public var lowWaterRecords = 3 << 19
            /// What of one peer's records the app may leave undone before the peer is stopped, in bytes, where each record
            /// counts 32 more. Default 16 MiB; at least one record of the largest size.
            public var inboxCapacity = 16 << 20
            /// About how many bytes of records go into one message of an exchange. Default 8 KiB.
            public var batchBytes = 8 << 10
            /// How long a peer's answer may take before an exchange ends. Default 60 s.
            public var patience = Duration.seconds(60)
            /// How long a peer may take to say who it is, before an exchange ends; ``patience``, if that is less. Default 10 s.
            public var greeting = Duration.seconds(10)
            /// Whether peers that nothing was ever appended to, and that are not named, may leave records. Default true.
            public var acceptsStrangers = true

            /// The defaults.
            public init() {}
        }

        /// The store's name, from its first opening on.
        public let id: StoreID
        /// This opening.
        public let epoch: Epoch
        /// The file.
        public let path: String
        /// Its bounds.
        public let configuration: Configuration
        /// What peers have sent.
        public var inbox: Inbox { Inbox(desk: desk, store: self) }

        let committer: Committer
        let admission: Admission
        let desk: InboxDesk
        let time: any TimeSource
        let watch = Watch()
        let decision = Mutex(Decision())
        private let wallClock: @Sendable () -> Date

        /// Milliseconds since 1970, by the wall clock, which is trusted for nothing but records' expiry.
        var milliseconds: Int64 { Int64(clampingMilliseconds: wallClock()) }

        init(
            _ id: StoreID, _ epoch: Epoch, _ committer: Committer, _ book: Book, _ configuration: Configuration,
            _ time: any TimeSource, _ wallClock: @escaping @Sendable () -> Date
        ) {
            self.id = id
            self.epoch = epoch
            path = committer.path
            self.configuration = configuration
            self.committer = committer
            self.time = time
            self.wallClock = wallClock
            admission = Admission(configuration, book)
            desk = InboxDesk(committer, book)
            // Who waits for what cannot come any more is told, and does not wait for ever.
            committer.whenFailed { [weak admission, weak watch, weak desk] reason in
                admission?.close(reason)
                watch?.end(reason)
                desk?.fail(reason)
            }
        }

        /// Waits until earlier calls are on disk, and closes the file. An append that waits for room throws `closed`.
        public func close() async {
            let reason = FerryError(.closed, "The store \(path) was closed.", fate: .nothingSent)
            admission.close(reason)
            watch.end(reason)
            desk.close()
            await committer.close()
        }
    }

    extension RecordStore.Configuration {
        func check() throws(FerryError) {
            func require(_ holds: Bool, _ name: String, _ value: Int, _ range: String) throws(FerryError) {
                guard !holds else { return }
                throw FerryError(
                    .invalidConfiguration, "RecordStore.Configuration.\(name) is \(value); it must be \(range).")
            }
            try require((1...1 << 30).contains(largestRecord), "largestRecord", largestRecord, "1 to 2^30")
            try require(highWaterBytes >= largestRecord, "highWaterBytes", highWaterBytes, "at least largestRecord")
            try require(
                (0...highWaterBytes).contains(lowWaterBytes), "lowWaterBytes", lowWaterBytes, "at most highWaterBytes")
            try require(highWaterRecords >= 1, "highWaterRecords", highWaterRecords, "at least 1")
            try require(
                (0...highWaterRecords).contains(lowWaterRecords), "lowWaterRecords", lowWaterRecords,
                "at most highWaterRecords")
            let cost = RecordsMessage.cost(of: largestRecord)
            try require(
                inboxCapacity >= cost && Int64(inboxCapacity) <= 1 << 40, "inboxCapacity", inboxCapacity,
                "at least largestRecord and 32, and at most 2^40")
            try require((1...1 << 24).contains(batchBytes), "batchBytes", batchBytes, "1 to 2^24")
            for (name, value) in [("patience", patience), ("greeting", greeting)] where value <= .zero {
                throw FerryError(
                    .invalidConfiguration, "RecordStore.Configuration.\(name) is \(value); it must be more than zero.")
            }
        }
    }

    extension Int64 {
        /// Held within what a date beyond reason would overflow.
        init(clampingMilliseconds date: Date) {
            let milliseconds = date.timeIntervalSince1970 * 1000
            self = milliseconds.isNaN ? 0 : Int64(Swift.max(-9e18, Swift.min(9e18, milliseconds)))
        }
    }
#endif
