#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import FerryRecords

    /// What an observer is to be told of records on their way: noted while the gateway's lock is held, and told after it. There is one
    /// only where there is an observer.
    struct Observation: Sendable {
        /// Where the server has a message, and whether it had it before.
        struct Receipt: Sendable {
            /// Nil where the server tells no place.
            let place: UInt64?
            let isDuplicate: Bool
        }

        /// When which message went.
        private var sent: [UInt64: Timestamp] = [:]
        private var published: [GatewayEvent.Publication] = []
        private var putOff: [GatewayEvent.PutOff] = []

        /// Notes a result, before the plan does.
        mutating func ended<Place, Message>(
            _ token: UInt64, _ result: Result<Receipt, FerryError>, in plan: borrowing PublishPlan<Place, Message>,
            isHeld: Bool, at now: Timestamp
        ) {
            let began = sent.removeValue(forKey: token)
            // Orders from before the restart are discarded.
            guard let began, let item = plan.item(token), let seen = item.seen else { return }
            switch result {
            case .success(let receipt):
                published.append(
                    GatewayEvent.Publication(
                        record: seen, sequence: receipt.place, isDuplicate: receipt.isDuplicate,
                        publishing: now - began, sinceRead: now - item.read))
            case .failure(let error):
                // It goes again with no more to do than that.
                if error.code == .natsConflict, plan.isFollower(token) { return }
                putOff.append(
                    GatewayEvent.PutOff(record: seen, error: error.code, message: error.message, isHeld: isHeld))
            }
        }

        /// Messages go.
        ///
        /// - Returns: the events to report.
        mutating func ordered(_ tokens: some Sequence<UInt64>, at now: Timestamp) -> [GatewayEvent] {
            for token in tokens { sent[token] = now }
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
