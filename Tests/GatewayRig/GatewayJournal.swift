#if NATS && Records
    package import Ferry
    package import FerryGateway
    package import FerryNATS
    import Synchronization

    /// An observer that writes everything down.
    package final class GatewayJournal: GatewayObserver {
        private let all = Mutex<[GatewayEvent]>([])
        private let more: @Sendable (GatewayEvent.Record) -> [NATSMessage.Header]

        /// - Parameter headers: what it gives messages.
        package init(headers: @escaping @Sendable (GatewayEvent.Record) -> [NATSMessage.Header] = { _ in [] }) {
            more = headers
        }

        package func observe(_ event: GatewayEvent) { all.withLock { $0.append(event) } }

        package func headers(for record: GatewayEvent.Record) -> [NATSMessage.Header] { more(record) }

        package var events: [GatewayEvent] { all.withLock { $0 } }

        package var read: [GatewayEvent.Record] {
            events.flatMap { event -> [GatewayEvent.Record] in
                if case .read(let records) = event { records } else { [] }
            }
        }
        package var published: [GatewayEvent.Publication] {
            events.flatMap { event -> [GatewayEvent.Publication] in
                if case .published(let publications) = event { publications } else { [] }
            }
        }
        package var putOff: [GatewayEvent.PutOff] {
            events.flatMap { event -> [GatewayEvent.PutOff] in
                if case .putOff(let putOff) = event { putOff } else { [] }
            }
        }
        /// How many records have left the store.
        package var released: Int {
            events.reduce(0) { sum, event in
                if case .looked(let released) = event { sum + released } else { sum }
            }
        }
        /// The servers that were connected to, in their order.
        package func servers(_ part: GatewayEvent.Part) -> [String] {
            events.compactMap { event -> String? in
                if case .connected(part, let server) = event { server } else { nil }
            }
        }
        /// How many messages peers have.
        package var carried: Int {
            events.reduce(0) { sum, event in if case .carried(_, let count) = event { sum + count } else { sum } }
        }
        /// Why messages for peers did not go on.
        package var heldUp: [FerryError.Code] {
            events.compactMap { event -> FerryError.Code? in
                if case .heldUp(_, let error) = event { error.code } else { nil }
            }
        }
        package var visits: [GatewayEvent.Visit] {
            events.compactMap { event -> GatewayEvent.Visit? in
                if case .visitEnded(_, let visit) = event { visit } else { nil }
            }
        }
    }
#endif
