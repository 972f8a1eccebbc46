public import Ferry

/// All conversations of one phone, as a value: no radio, no clock, no screen.
///
/// Each phone offers the service and looks for others at the same time. Of two phones that hear each other, the one with the
/// larger number connects; the other does so after ``politeness`` if it has not. If both have connected, both keep the link
/// that the phone with the larger number made.
public struct Room: Sendable {
    /// A link between two phones, by the number that the caller gave it.
    public typealias LinkID = Int

    /// Who made a link.
    public enum Role: Sendable, Hashable {
        /// This phone, to a peer that it has heard.
        case central(PeerIdentity)
        /// The other.
        case peripheral
    }

    /// What has happened.
    public enum Event: Sendable {
        /// A phone is heard. `token`: what it advertises of its number.
        case heard(PeerIdentity, token: UInt32?)
        /// A link is there.
        case opened(LinkID, Role)
        /// A connection that was asked for did not come about.
        case failed(PeerIdentity)
        /// A message has come.
        case received(CardMessage, on: LinkID)
        /// A link has ended.
        case closed(LinkID)
        /// This phone's person agrees that the codes are the same, and wants to exchange cards.
        case accepted(Person.ID)
        /// This phone's person does not want to.
        case declined(Person.ID)
        /// ``nextDeadline`` has come.
        case woken
    }

    /// What the caller has to do.
    public enum Effect: Sendable, Hashable {
        /// Connect to the peer; ``Event/opened(_:_:)`` or ``Event/failed(_:)`` follows.
        case connect(PeerIdentity)
        /// Send the message after those before it.
        case send(CardMessage, on: LinkID)
        /// End the link after what was sent; ``Event/closed(_:)`` follows.
        case close(LinkID)
    }

    /// How long the phone with the smaller number waits for the other to connect.
    public static let politeness = Duration.seconds(8)
    /// How long a peer may take to say hello.
    public static let greetingTimeout = Duration.seconds(10)
    /// The pause before a peer that could not be reached, or was lost, is tried again.
    public static let retryPause = Duration.seconds(2)
    /// Connections that are tried to one peer.
    public static let attempts = 3
    /// The most links at a time.
    public static let maximumLinks = 16
    /// The most peers and people that are remembered.
    public static let maximumPeople = 64

    private enum Attempt: Sendable {
        case waiting(until: Timestamp, token: UInt32?, left: Int)
        case under(left: Int, token: UInt32?)
        /// Talked to, or given up.
        case settled
    }

    private enum Talk: Sendable {
        case greeting(Role, until: Timestamp)
        case person(Person.ID, Role)
    }

    private let me: Greeting
    private let card: ContactCard
    private var attempts: [PeerIdentity: Attempt] = [:]
    private var talks: [LinkID: Talk] = [:]
    /// Everybody who was met, in the order of their hellos.
    public private(set) var people: [Person] = []
    private var effects: [Effect] = []

    /// A room without others.
    ///
    /// - Parameters:
    ///   - id: a number that this phone has drawn for this session.
    ///   - card: this phone's card.
    public init(id: UInt64, card: ContactCard) {
        me = Greeting(id: id, name: card.displayName)
        self.card = card
    }

    /// When ``Event/woken`` is due; `nil` for never.
    public var nextDeadline: Timestamp? {
        let greetings = talks.values.compactMap { if case .greeting(_, let until) = $0 { until } else { nil } }
        let waits = attempts.values.compactMap { if case .waiting(let until, _, _) = $0 { until } else { nil } }
        return (greetings + waits).min()
    }

    /// Takes an event; returns what is to be done, in order.
    public mutating func take(_ event: Event, at now: Timestamp) -> [Effect] {
        effects = []
        switch event {
        case .heard(let peer, let token): heard(peer, token, now)
        case .opened(let link, let role): opened(link, role, now)
        case .failed(let peer): retry(peer, now)
        case .received(let message, let link): received(message, link)
        case .closed(let link): closed(link, now)
        case .accepted(let id): accept(id)
        case .declined(let id): decline(id)
        case .woken: wake(now)
        }
        return effects
    }

    // MARK: Links

    private mutating func heard(_ peer: PeerIdentity, _ token: UInt32?, _ now: Timestamp) {
        guard attempts[peer] == nil, attempts.count < Self.maximumPeople else { return }
        let isMine = token.map { $0 < Greeting.token(me.id) } ?? true
        attempts[peer] = .waiting(until: isMine ? now : now + Self.politeness, token: token, left: Self.attempts)
        wake(now)
    }

    private mutating func wake(_ now: Timestamp) {
        for (peer, attempt) in attempts {
            guard case .waiting(let until, let token, let left) = attempt, until <= now else { continue }
            // The other has come meanwhile.
            if let token, people.contains(where: { Greeting.token($0.id) == token && link(of: $0.id) != nil }) {
                attempts[peer] = .settled
            } else {
                attempts[peer] = .under(left: left - 1, token: token)
                effects.append(.connect(peer))
            }
        }
        for (link, talk) in talks {
            guard case .greeting(_, let until) = talk, until <= now else { continue }
            drop(link)
        }
    }

    private mutating func retry(_ peer: PeerIdentity, _ now: Timestamp) {
        guard case .under(let left, let token)? = attempts[peer] else { return }
        attempts[peer] = left > 0 ? .waiting(until: now + Self.retryPause, token: token, left: left) : .settled
    }

    private mutating func opened(_ link: LinkID, _ role: Role, _ now: Timestamp) {
        guard talks.count < Self.maximumLinks else { return effects.append(.close(link)) }
        talks[link] = .greeting(role, until: now + Self.greetingTimeout)
        effects.append(.send(.hello(me), on: link))
    }

    private mutating func closed(_ link: LinkID, _ now: Timestamp) {
        guard let talk = talks.removeValue(forKey: link) else { return }
        switch talk {
        case .greeting(.central(let peer), _): retry(peer, now)
        case .greeting(.peripheral, _): break
        case .person(let id, let role):
            guard let index = index(of: id) else { return }
            switch people[index].stage {
            case .comparing:
                people.remove(at: index)
                if case .central(let peer) = role { retry(peer, now) }
            case .waiting:
                people[index].stage = .failed("\(people[index].name) has gone. Open the app on both phones again.")
            case .exchanging(let progress):
                people[index].stage =
                    progress.card.map { .done($0, isDelivered: progress.isDelivered) }
                    ?? .failed("The connection to \(people[index].name) was lost before the card had come. Try again.")
            case .done, .declined, .failed: break
            }
        }
    }

    /// Ends a link without a word to the person.
    private mutating func drop(_ link: LinkID) {
        if case .greeting(.central(let peer), _)? = talks.removeValue(forKey: link) { attempts[peer] = .settled }
        effects.append(.close(link))
    }

    private func link(of id: Person.ID) -> LinkID? {
        talks.first { if case .person(id, _) = $0.value { true } else { false } }?.key
    }

    private func index(of id: Person.ID) -> Int? { people.firstIndex { $0.id == id } }

    // MARK: Messages

    private mutating func received(_ message: CardMessage, _ link: LinkID) {
        switch (talks[link], message) {
        case (.greeting(let role, _)?, .hello(let greeting)): meet(greeting, on: link, role)
        case (.person(let id, let role)?, _):
            guard let index = index(of: id) else { return drop(link) }
            answer(message, index, link, role)
        case (.greeting?, _): drop(link)
        case (nil, _): break
        }
    }

    private mutating func meet(_ greeting: Greeting, on link: LinkID, _ role: Role) {
        guard greeting.version == Greeting.version, greeting.id != me.id, !greeting.name.isEmpty,
            ContactCard.isAcceptable(greeting.name)
        else { return drop(link) }
        let other = self.link(of: greeting.id)
        if let other, case .person(_, let otherRole)? = talks[other] {
            // Both have connected. Of two links that one phone made, the newer one lives.
            guard central(role, greeting.id) >= central(otherRole, greeting.id) else { return drop(link) }
            talks[other] = nil
            effects.append(.close(other))
        }
        talks[link] = .person(greeting.id, role)
        guard let index = index(of: greeting.id) else {
            guard people.count < Self.maximumPeople else { return drop(link) }
            people.append(
                Person(id: greeting.id, name: greeting.name, code: Greeting.code(me.id, greeting.id)))
            return
        }
        switch people[index].stage {
        case .comparing, .failed: people[index].stage = .comparing(theyAgreed: false)
        // The other link took the consents with it; the cards follow them again.
        case .waiting, .exchanging:
            people[index].stage = .waiting
            effects.append(.send(.consent, on: link))
        case .done, .declined: drop(link)
        }
    }

    private func central(_ role: Role, _ other: Person.ID) -> UInt64 {
        if case .central = role { me.id } else { other }
    }

    private mutating func answer(_ message: CardMessage, _ index: Int, _ link: LinkID, _ role: Role) {
        switch (people[index].stage, message) {
        case (.comparing, .consent): people[index].stage = .comparing(theyAgreed: true)
        case (.waiting, .consent): exchange(index, on: link)
        case (.comparing, .decline), (.waiting, .decline):
            people[index].stage = .declined(by: .them)
            drop(link)
        case (.exchanging(var progress), .card(let card)) where card.isAcceptable && progress.card == nil:
            progress.card = card
            people[index].stage = .exchanging(progress)
            effects.append(.send(.received, on: link))
            finish(index, link, role)
        case (.exchanging(var progress), .received):
            progress.isDelivered = true
            people[index].stage = .exchanging(progress)
            finish(index, link, role)
        case (.done, _), (.declined, _), (.failed, _): break
        default:
            people[index].stage = .failed(
                "The phone of \(people[index].name) sent what was not expected. Update the app.")
            drop(link)
        }
    }

    private mutating func exchange(_ index: Int, on link: LinkID) {
        people[index].stage = .exchanging(Person.Progress())
        effects.append(.send(.card(card), on: link))
    }

    /// The central ends the link: a peripheral on iOS cannot.
    private mutating func finish(_ index: Int, _ link: LinkID, _ role: Role) {
        guard case .exchanging(let progress) = people[index].stage, progress.isDelivered, let card = progress.card
        else {
            return
        }
        people[index].stage = .done(card, isDelivered: true)
        if case .central = role { drop(link) }
    }

    // MARK: The person

    private mutating func accept(_ id: Person.ID) {
        guard let index = index(of: id), let link = link(of: id), case .comparing(let theyAgreed) = people[index].stage
        else { return }
        effects.append(.send(.consent, on: link))
        people[index].stage = .waiting
        if theyAgreed { exchange(index, on: link) }
    }

    private mutating func decline(_ id: Person.ID) {
        guard let index = index(of: id), let link = link(of: id), !people[index].isOver else { return }
        if case .exchanging = people[index].stage { return }
        effects.append(.send(.decline, on: link))
        people[index].stage = .declined(by: .me)
        drop(link)
    }
}
