#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import FerryRecords

    /// What an observer is to be told of records on their way: noted while the gateway's lock is held, and told after it. There is one
    /// only where there is an observer.
    struct Observation: Sendable {
        typealias Plan = PublishPlan<ArrivedRecord.Place>

        /// When which message went.
        private var sent: [UInt64: Timestamp] = [:]
        private var published: [GatewayEvent.Publication] = []
        private var putOff: [GatewayEvent.PutOff] = []

        /// Notes results, before the plan does.
        mutating func ended(_ ends: [NATSPublisher.Ended], in plan: borrowing Plan, at now: Timestamp) {
            for end in ends {
                let began = sent.removeValue(forKey: end.token)
                // Orders from before the restart are discarded.
                guard let began, let seen = plan.item(end.token)?.seen else { continue }
                switch end.result {
                case .success(let receipt):
                    published.append(
                        GatewayEvent.Publication(
                            record: seen.record, sequence: receipt.sequence, isDuplicate: receipt.isDuplicate,
                            publishing: now - began, sinceRead: now - seen.read))
                case .failure(let error):
                    // It goes again with no more to do than that.
                    if error.code == .natsConflict, plan.isFollower(end.token) { continue }
                    putOff.append(
                        GatewayEvent.PutOff(
                            record: seen.record, error: error.code, message: error.message,
                            isHeld: Plan.Outcome(error) == .refused))
                }
            }
        }

        /// Messages go.
        ///
        /// - Returns: the events to report.
        mutating func ordered(_ orders: [Plan.Order], at now: Timestamp) -> [GatewayEvent] {
            for order in orders { sent[order.token] = now }
            var events: [GatewayEvent] = []
            if !published.isEmpty { events.append(.published(published)) }
            if !putOff.isEmpty { events.append(.putOff(putOff)) }
            published = []
            putOff = []
            return events
        }

        /// Reading begins again, and nothing is on its way.
        mutating func beginAgain() { sent = [:] }
    }

    /// A record as an observer is told of it.
    final class SeenRecord: Sendable {
        let record: GatewayEvent.Record
        let read: Timestamp

        init(_ record: GatewayEvent.Record, at now: Timestamp) {
            self.record = record
            read = now
        }

        convenience init(_ record: ArrivedRecord, name: String, token: FencingToken?, at now: Timestamp) {
            self.init(
                GatewayEvent.Record(
                    id: record.id, name: name, peer: record.peer, token: token, bytes: record.bytes.count), at: now)
        }
    }

    extension GatewayObserver {
        /// Tells that records were read.
        ///
        /// - Returns: the same, with the headers that the observer gives them.
        func show(_ items: [Observation.Plan.Item]) -> [Observation.Plan.Item] {
            observe(.read(items.compactMap { $0.seen?.record }))
            return items.map { item in
                guard let seen = item.seen else { return item }
                let more = ObserverHeaders.fit(headers(for: seen.record))
                guard !more.isEmpty else { return item }
                let message = NATSMessage(
                    item.message.subject, headers: item.message.headers + more, bytes: item.message.bytes)
                return Observation.Plan.Item(
                    lane: item.lane, id: item.id, message: message, place: item.place, seen: seen)
            }
        }
    }

    /// Selects the valid headers of an observer's: invalid ones never keep a record from being published.
    enum ObserverHeaders {
        static var mostBytes: Int { 1024 }

        static func fit(_ headers: [NATSMessage.Header]) -> [NATSMessage.Header] {
            guard !headers.isEmpty else { return [] }
            var names: Set<String> = []
            var bytes = 0
            return headers.filter { header in
                let name = header.name.lowercased()
                guard header.isPlain, !name.hasPrefix("nats-"), !name.hasPrefix("ferry-") else { return false }
                // With the colon, the space and the end of the line.
                let size = header.name.utf8.count + header.value.utf8.count + 4
                guard bytes + size <= mostBytes, names.insert(name).inserted else { return false }
                bytes += size
                return true
            }
        }
    }
#endif
