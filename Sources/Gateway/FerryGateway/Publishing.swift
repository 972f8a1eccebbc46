#if NATS && Records
    import Ferry
    import FerryRecords

    /// The records of a gateway that are on their way, and their counts: a value without I/O and clock, the same for a
    /// ``Gateway`` and an ``OutletGateway``.
    struct Publishing<Message: Sendable>: Sendable {
        typealias Plan = PublishPlan<ArrivedRecord.Place, Message>

        var plan: Plan
        var retention: Retention<ArrivedRecord.Place>
        var status = Gateway.Status()
        /// Why reading the inbox has ended.
        var failure: FerryError?
        /// What an observer is to be told; nil without one.
        private var observation: Observation?
        /// Of one outcome after the other, so that none needs separate memory.
        private var arrived: [Plan.Arrived] = []

        init(_ bounds: Plan.Bounds, keeping time: Duration, isObserved: Bool) {
            plan = Plan(bounds)
            retention = Retention(time)
            observation = isObserved ? Observation() : nil
        }

        /// How it stands.
        ///
        /// - Parameter waiting: how many records are in the inbox.
        func status(waiting: Int, isConnected: Bool, at now: Timestamp) -> Gateway.Status {
            var status = status
            status.isConnected = isConnected
            status.kept = retention.count
            status.waiting = waiting
            status.oldest = plan.oldest.map { now - $0 } ?? .zero
            status.held = plan.refusedLanes
            return status
        }

        /// Reading begins again: records that are not done come once more.
        mutating func beginAgain() {
            plan.beginAgain()
            retention.beginAgain()
            observation?.beginAgain()
        }

        /// Adds messages to publish now.
        ///
        /// - Returns: what an observer is to be told; nil without one.
        mutating func order(_ orders: inout [Plan.Order], at now: Timestamp) -> [GatewayEvent]? {
            plan.order(&orders, at: now)
            return observation?.ordered(orders.lazy.map(\.token), at: now)
        }

        /// Notes the outcome of a message.
        ///
        /// - Parameter result: the same as an observer is told of it.
        /// - Returns: whether records are known to be there now that were not before.
        @discardableResult mutating func ended(
            _ token: UInt64, _ outcome: Plan.Outcome, _ result: Result<Observation.Receipt, FerryError>,
            at now: Timestamp
        ) -> Bool {
            observation?.ended(token, result, in: plan, isHeld: outcome == .refused, at: now)
            arrived.removeAll(keepingCapacity: true)
            plan.ended(token, outcome, at: now, &arrived)
            for record in arrived {
                retention.stored(record.item.place, in: record.item.lane, at: now)
                status.published += 1
                if record.isDuplicate { status.duplicates += 1 }
            }
            return !arrived.isEmpty
        }
    }
#endif
