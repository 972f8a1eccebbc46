package import FerryBluetooth
import Synchronization

/// A person at one of two devices that pair: says what the test has decided, and the journal has what was asked.
package final class Person: PairingAgent, Sendable {
    /// Lines `show N`, `compare N`, `passkey`, `allow` and `service UUID`, and what the answers add.
    package let journal = Journal()
    private let answers = Mutex(Answers())

    /// What the person does. Whoever is not told otherwise agrees, and knows no number.
    package struct Answers: Sendable {
        package var show: @Sendable (Int) -> Void = { _ in }
        package var compare: @Sendable (Int) async -> Bool = { _ in true }
        package var passkey: @Sendable () async -> Int? = { nil }
        package var allow: @Sendable () async -> Bool = { true }
        package var allowService: @Sendable () async -> Bool = { true }
    }

    package init(_ decide: (inout Answers) -> Void = { _ in }) { answers.withLock { decide(&$0) } }

    package convenience init(agrees: Bool) {
        self.init {
            $0.compare = { _ in agrees }
            $0.allow = { agrees }
            $0.allowService = { agrees }
        }
    }

    /// What was asked, without the numbers.
    package var questions: [String] { journal.all.map { String($0.prefix { $0 != " " }) } }

    /// Changes the person's mind.
    package func decide(_ change: (inout Answers) -> Void) { answers.withLock { change(&$0) } }

    /// Thinks until nobody wants to know any more, says so in the journal, and agrees.
    package func thinkTooLong() async -> Bool {
        await untilCancelled()
        journal.add("cancelled")
        return true
    }

    // MARK: PairingAgent

    package func show(_ number: Int, for peer: PeerID) {
        journal.add("show \(number)")
        answers.withLock { $0.show }(number)
    }

    package func compare(_ number: Int, with peer: PeerID) async -> Bool {
        journal.add("compare \(number)")
        return await answers.withLock { $0.compare }(number)
    }

    package func passkey(of peer: PeerID) async -> Int? {
        journal.add("passkey")
        return await answers.withLock { $0.passkey }()
    }

    package func allowsPairing(with peer: PeerID) async -> Bool {
        journal.add("allow")
        return await answers.withLock { $0.allow }()
    }

    package func allowsService(_ service: BluetoothUUID, for peer: PeerID) async -> Bool {
        journal.add("service \(service)")
        return await answers.withLock { $0.allowService }()
    }
}
