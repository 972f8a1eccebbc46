import Synchronization

/// Serves the links that come to a listener, as ``AcceptingPlan`` gives them places.
///
///     let acceptor = Acceptor(AcceptingPlan.Configuration(places: 64))
///     await acceptor.serve(listener.links) { comer in
///         // reads the first message, then:
///         try comer.greeted(as: channel.peer)
///     }
///
/// Every listener of Ferry's programs accepts through it: files, records, gateways and measurements.
package final class Acceptor: Sendable {
    /// What a listener that gives its places to others as well, such as a hub, decides itself.
    package struct Places: Sendable {
        /// How many places comers may have at present.
        package var count: @Sendable () -> Int
        /// Takes a place for a comer; false when there is none after all. A guest that is named gives its place up.
        package var take: @Sendable (_ comer: Comer, _ instead: Comer?) -> Bool

        package init(
            count: @escaping @Sendable () -> Int, take: @escaping @Sendable (_ comer: Comer, _ instead: Comer?) -> Bool
        ) {
            self.count = count
            self.take = take
        }
    }

    private struct State {
        var plan: AcceptingPlan
        var comers: [AcceptingPlan.Comer: Comer] = [:]
        var alarm: (at: Timestamp, timer: ScheduledTimer)?
    }

    private let state: Mutex<State>
    private let time: any TimeSource
    private let places: Places?

    /// Makes an acceptor.
    ///
    /// - Parameters:
    ///   - configuration: its bounds.
    ///   - time: the clock.
    ///   - places: who else decides on places; nil for the configuration alone.
    package init(
        _ configuration: AcceptingPlan.Configuration, time: any TimeSource = SystemTime(), places: Places? = nil
    ) {
        state = Mutex(State(plan: AcceptingPlan(configuration)))
        self.time = time
        self.places = places
    }

    /// How many links there are, and how many of their peers have places.
    package var counts: (links: Int, placed: Int) { state.withLock { ($0.plan.count, $0.plan.placed) } }

    /// Serves each link in a separate task until the listener ends; returns when all tasks have ended.
    ///
    /// - Parameters:
    ///   - links: as of a ``LinkListener``.
    ///   - body: reads and answers. It calls ``Comer/greeted(as:)`` at the first message that a peer of its protocol would send.
    package func serve(
        _ links: AsyncStream<any Link>, _ body: @escaping @Sendable (Comer) async -> Void
    ) async {
        await withDiscardingTaskGroup { group in
            for await link in links { serve(link, &group, body) }
        }
    }

    /// The same for one link, in a group of the caller's.
    package func serve(
        _ link: any Link, _ group: inout DiscardingTaskGroup, _ body: @escaping @Sendable (Comer) async -> Void
    ) {
        let comer = come(link)
        group.addTask {
            // One that has given way before its turn costs no more than that.
            guard self.state.withLock({ $0.comers[comer.id] != nil }) else { return }
            await body(comer)
            self.left(comer)
        }
    }

    private func come(_ link: any Link) -> Comer {
        let (comer, closed) = state.withLock { state in
            let (number, closed) = state.plan.came(from: link.source, at: time.now)
            let comer = Comer(number, link, self)
            state.comers[number] = comer
            let old = closed.flatMap { state.comers.removeValue(forKey: $0) }
            schedule(&state)
            return (comer, old)
        }
        closed?.link.close()
        return comer
    }

    /// Closes every link, when no more is to be served.
    package func closeAll() {
        for comer in state.withLock({ Array($0.comers.values) }) { comer.link.close() }
    }

    private func left(_ comer: Comer) {
        state.withLock { state in
            state.plan.left(comer.id)
            state.comers[comer.id] = nil
        }
    }

    /// Called with a lock of the caller's own: it calls no comer's code.
    fileprivate func greeted(_ comer: Comer, from source: LinkSource, isChecked: Bool) throws(FerryError) {
        let (refusal, replaced) = state.withLock { state -> (AcceptingPlan.Refusal?, Comer?) in
            let now = time.now
            switch state.plan.greeted(
                comer.id, from: source, isChecked: isChecked, places: places?.count(), at: now)
            {
            case .refused(let refusal):
                schedule(&state)
                return (refusal, nil)
            case .admitted(let instead):
                schedule(&state)
                let replaced = instead.flatMap { state.comers[$0] }
                guard places?.take(comer, replaced) ?? true else {
                    state.plan.left(comer.id)
                    return (.full(places: state.plan.configuration.places), replaced)
                }
                return (nil, replaced)
            }
        }
        if let replaced { time.startTask { replaced.giveWay() } }
        if let refusal { throw FerryError(.noPlace, refusal.message) }
    }

    fileprivate func checked(_ comer: Comer) { state.withLock { $0.plan.checked(comer.id) } }

    fileprivate func proved(_ comer: Comer) { state.withLock { $0.plan.proved(comer.id) } }

    private func schedule(_ state: inout State) {
        guard let next = state.plan.nextDeadline else { return }
        if let alarm = state.alarm, alarm.at <= next { return }
        state.alarm?.timer.cancel()
        state.alarm = (next, time.schedule(at: next) { [weak self] in self?.closeOverdue() })
    }

    private func closeOverdue() {
        let overdue = state.withLock { state in
            state.alarm = nil
            let overdue = state.plan.overdue(at: time.now).compactMap { state.comers.removeValue(forKey: $0) }
            schedule(&state)
            return overdue
        }
        for comer in overdue { comer.link.close() }
    }
}

extension Acceptor {
    /// A link that has come, and what its server says of its peer.
    package final class Comer: Sendable {
        private enum Standing: Int, Comparable {
            case silent, guest, proven

            static func < (a: Standing, b: Standing) -> Bool { a.rawValue < b.rawValue }
        }

        private struct State {
            var standing = Standing.silent
            var whenReplaced: (@Sendable (FerryError) -> Void)?
        }

        fileprivate let id: AcceptingPlan.Comer
        /// The link. Its server owns it; the acceptor only closes it.
        package let link: any Link
        private let acceptor: Acceptor
        private let state = Mutex(State())

        fileprivate init(_ id: AcceptingPlan.Comer, _ link: any Link, _ acceptor: Acceptor) {
            (self.id, self.link, self.acceptor) = (id, link, acceptor)
        }

        /// Counted from 1.
        package var number: Int { id.number }

        /// Whether the peer has brought something, or is known.
        package var isProven: Bool { state.withLock { $0.standing == .proven } }

        /// The peer has greeted: it takes a place. Calls no code of other comers, and may be called with a lock held.
        ///
        /// - Parameter isChecked: whether it is known already who the peer is; otherwise ``checked()`` or ``proved()`` follows.
        /// - Throws: `noPlace` with what the peer is to be told, when there is no place for it.
        package func greeted(as identity: PeerIdentity, isChecked: Bool = true) throws(FerryError) {
            let source: LinkSource = identity.certainty >= .bond ? LinkSource(identity) : link.source
            try acceptor.greeted(self, from: source, isChecked: isChecked)
            state.withLock { $0.standing = max($0.standing, .guest) }
        }

        /// It was looked up who the peer is.
        package func checked() { acceptor.checked(self) }

        /// The peer has brought something, or is known: it keeps its place.
        package func proved() {
            let isNews = state.withLock { state in
                defer { state.standing = .proven }
                return state.standing != .proven
            }
            if isNews { acceptor.proved(self) }
        }

        /// Names what ends the exchange when a guest gives its place up. Without it the link is closed.
        package func onReplaced(_ body: @escaping @Sendable (FerryError) -> Void) {
            state.withLock { $0.whenReplaced = body }
        }

        fileprivate func giveWay() {
            guard let body = state.withLock(\.whenReplaced) else { return link.close() }
            body(FerryError(.noPlace, AcceptingPlan.Refusal.late.message))
        }
    }
}
