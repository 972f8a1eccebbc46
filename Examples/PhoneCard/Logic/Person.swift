/// A person nearby who has the app open.
public struct Person: Sendable, Hashable, Identifiable {
    /// How far the exchange with the person is.
    public enum Stage: Sendable, Hashable {
        /// The people compare their codes. `theyAgreed`: the other has consented already.
        case comparing(theyAgreed: Bool)
        /// This side has consented, the other has not.
        case waiting
        /// Both have consented; cards cross.
        case exchanging(Progress)
        /// The card is here. `isDelivered`: the other has said that it has this side's.
        case done(ContactCard, isDelivered: Bool)
        /// One of the two does not want to.
        case declined(by: Side)
        /// It did not come to an end; the sentence is for people.
        case failed(String)
    }

    /// What has crossed.
    public struct Progress: Sendable, Hashable {
        /// The other's card, once it is here.
        public var card: ContactCard?
        /// Whether the other has said that it has this side's.
        public var isDelivered = false
    }

    /// One of the two.
    public enum Side: Sendable, Hashable {
        /// This phone's person.
        case me
        /// The other.
        case them
    }

    /// The number that the other phone has drawn.
    public let id: UInt64
    /// What the other phone calls its person.
    public let name: String
    /// The six digits that both phones show.
    public let code: String
    /// How far it is.
    public internal(set) var stage = Stage.comparing(theyAgreed: false)

    /// Whether there is nothing more to come.
    public var isOver: Bool {
        switch stage {
        case .comparing, .waiting, .exchanging: false
        case .done, .declined, .failed: true
        }
    }

    /// Whether this side's person has consented.
    var hasMyConsent: Bool {
        switch stage {
        case .waiting, .exchanging: true
        case .comparing, .done, .declined, .failed: false
        }
    }
}
