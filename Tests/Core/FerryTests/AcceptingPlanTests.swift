import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Who has a place at a listener, as a value.
@Suite(.tags(.core, .hostility)) struct AcceptingPlanTests {
    private let zero = Timestamp.zero
    private let stranger = LinkSource.address("203.0.113.9")
    private let honest = LinkSource.address("192.0.2.1")

    private func plan(places: Int = 4, greetings: Int = 8) -> AcceptingPlan {
        var configuration = AcceptingPlan.Configuration(places: places)
        configuration.greetings = greetings
        return AcceptingPlan(configuration)
    }

    @Test func aSilentLinkHasNoPlaceAndTenSeconds() {
        var plan = plan()
        let (silent, closed) = plan.came(from: stranger, at: zero)
        #expect(closed == nil && plan.placed == 0 && plan.nextDeadline == zero + .seconds(10))
        #expect(plan.overdue(at: zero + .milliseconds(9_999)).isEmpty)
        #expect(plan.overdue(at: zero + .seconds(10)) == [silent])
        #expect(plan.count == 0 && plan.nextDeadline == nil)
        #expect(plan.greeted(silent, from: stranger, at: zero) == .refused(.late))
    }

    /// 10 000 silent links, and an honest peer of another address that greets after as many others have come as may wait.
    @Test func silentLinksOfOneSourceCloseEachOtherOnly() {
        var plan = plan()
        let comer = plan.came(from: honest, at: zero).comer
        for number in 0..<10_000 {
            let (silent, closed) = plan.came(from: stranger, at: zero)
            #expect(closed != comer && closed != silent && plan.count <= 8, "\(number)")
        }
        #expect(plan.greeted(comer, from: honest, at: zero) == .admitted(instead: nil))
    }

    /// The places of a user's processes are limited together; what gives way is the flood's own.
    @Test func aProcessOfTheSameUserKeepsNobodyOut() {
        var plan = plan()
        let (flood, process) = (LinkSource.user(1000, process: 7), LinkSource.user(1000, process: 8))
        let comer = plan.came(from: process, at: zero).comer
        for number in 0..<1_000 {
            let (silent, closed) = plan.came(from: flood, at: zero)
            #expect(closed != comer && plan.count <= 12, "\(number)")
            if number % 2 == 0 { _ = plan.greeted(silent, from: flood, at: zero) }
        }
        guard case .admitted(.some(let instead)) = plan.greeted(comer, from: process, at: zero) else {
            Issue.record("the honest process was refused")
            return
        }
        #expect(instead != comer && plan.placed == 3)
        for _ in 0..<1_000 {
            let guest = plan.came(from: flood, at: zero).comer
            #expect(plan.greeted(guest, from: flood, at: zero) != .admitted(instead: comer))
        }
        #expect(plan.placed == 3)
    }

    @Test func theOldestSilentLinkIsClosedFirst() {
        var plan = plan(greetings: 3)
        let first = (0..<3).map { _ in plan.came(from: stranger, at: zero).comer }
        #expect(plan.came(from: stranger, at: zero).closed == first[0])
        #expect(plan.came(from: stranger, at: zero).closed == first[1])
    }

    /// 100 000 greetings of strangers, who bring nothing: they take each other's places.
    @Test func guestsGiveWayAndProvenPeersStay() {
        var plan = plan()
        let proven = plan.came(from: honest, at: zero).comer
        #expect(plan.greeted(proven, from: honest, at: zero) == .admitted(instead: nil))
        plan.proved(proven)
        for number in 0..<100_000 {
            let guest = plan.came(from: stranger, at: zero).comer
            guard case .admitted(let instead) = plan.greeted(guest, from: stranger, at: zero) else {
                Issue.record("stranger \(number) was refused")
                break
            }
            #expect(instead != proven && plan.count <= 12)
        }
        let other = plan.came(from: .address("192.0.2.2"), at: zero).comer
        guard case .admitted(.some) = plan.greeted(other, from: .address("192.0.2.2"), at: zero) else {
            Issue.record("an honest peer was refused")
            return
        }
        plan.proved(other)
        #expect(plan.placed == 4)
    }

    /// A peer that is being looked up gives way to nobody, and then to others as a stranger.
    @Test func whoIsLookedUpStays() {
        var plan = plan(places: 1)
        let (first, second, third) = (
            plan.came(from: stranger, at: zero).comer, plan.came(from: honest, at: zero).comer,
            plan.came(from: honest, at: zero).comer
        )
        #expect(plan.greeted(first, from: stranger, isChecked: false, at: zero) == .admitted(instead: nil))
        #expect(plan.greeted(second, from: honest, at: zero) == .refused(.full(places: 1)))
        plan.checked(first)
        #expect(plan.greeted(third, from: honest, at: zero) == .admitted(instead: first))
    }

    @Test func provenPeersFillAllPlaces() {
        var plan = plan(places: 2)
        for number in 0..<2 {
            let source = LinkSource.address("\(number)")
            let comer = plan.came(from: source, at: zero).comer
            #expect(plan.greeted(comer, from: source, at: zero) == .admitted(instead: nil))
            plan.proved(comer)
        }
        let third = plan.came(from: honest, at: zero).comer
        #expect(plan.greeted(third, from: honest, at: zero) == .refused(.full(places: 2)))
        // It is told, and has five seconds to hear it.
        #expect(plan.nextDeadline == zero + .seconds(5) && plan.placed == 2)
        #expect(plan.overdue(at: zero + .seconds(5)) == [third])
    }

    @Test func aSourceHasThreeQuartersOfThePlaces() {
        var plan = plan(places: 4)
        for _ in 0..<3 {
            let comer = plan.came(from: stranger, at: zero).comer
            _ = plan.greeted(comer, from: stranger, at: zero)
            plan.proved(comer)
        }
        let fourth = plan.came(from: stranger, at: zero).comer
        #expect(plan.greeted(fourth, from: stranger, at: zero) == .refused(.sourceIsFull(places: 3)))
        let comer = plan.came(from: honest, at: zero).comer
        #expect(plan.greeted(comer, from: honest, at: zero) == .admitted(instead: nil))
    }

    /// A peer that comes again while its old links are dying.
    @Test func theOldestLinkOfAKeyGivesWay() {
        var plan = plan(places: 8)
        let comers = (0..<3).map { _ in plan.came(from: stranger, at: zero).comer }
        #expect(plan.greeted(comers[0], from: .key("k"), at: zero) == .admitted(instead: nil))
        plan.proved(comers[0])
        #expect(plan.greeted(comers[1], from: .key("k"), at: zero) == .admitted(instead: nil))
        #expect(plan.greeted(comers[2], from: .key("k"), at: zero) == .admitted(instead: comers[0]))
    }

    @Test func placesMayBeFewerAtPresent() {
        var plan = plan(places: 4)
        let comer = plan.came(from: honest, at: zero).comer
        #expect(plan.greeted(comer, from: honest, places: 0, at: zero) == .refused(.full(places: 0)))
    }
}

/// The same with links, in virtual time.
@Suite(.tags(.core, .hostility), .timeLimit(.minutes(1))) struct AcceptorTests {
    private let time = VirtualTime()

    private final class Shared<Value: Sendable>: Sendable {
        private let content: Mutex<Value>
        init(_ value: Value) { content = Mutex(value) }
        var value: Value {
            get { content.withLock { $0 } }
            set { content.withLock { $0 = newValue } }
        }
        func change(_ body: (inout Value) -> Void) { content.withLock { body(&$0) } }
    }

    /// A link that only knows whether it was closed.
    private final class Door: Link {
        let peer = PeerIdentity("door", certainty: .connection)
        let source: LinkSource
        let isClosed = Shared(false)
        let ended = AsyncStream<Void>.makeStream()
        var maximumChunkSize: Int { 20 }

        init(_ source: LinkSource) { self.source = source }
        func activate(_ receiver: any LinkReceiver) {}
        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { false }
        func setReceiving(_ isReceiving: Bool) {}
        func close() {
            isClosed.value = true
            ended.continuation.finish()
        }
        func wait() async { for await _ in ended.stream {} }
    }

    @Test func silentLinksAreClosedAndOthersServed() async throws {
        var configuration = AcceptingPlan.Configuration(places: 2)
        configuration.greetings = 4
        let acceptor = Acceptor(configuration, time: time)
        let (links, come) = AsyncStream<any Link>.makeStream()
        let served = Shared(0)
        let serving = Task {
            await acceptor.serve(links) { comer in
                guard let door = comer.link as? Door else { return }
                if case .address("honest") = door.source {
                    do throws(FerryError) {
                        try comer.greeted(as: door.peer)
                        served.change { $0 += 1 }
                    } catch { Issue.record(error) }
                    return door.close()
                }
                await door.wait()
            }
        }
        let silent = (0..<1000).map { _ in Door(.address("silent")) }
        for (number, door) in silent.enumerated() {
            come.yield(door)
            guard number % 100 == 50 else { continue }
            come.yield(Door(.address("honest")))
            try await until("honest peer \(number / 100) is served") { served.value == number / 100 + 1 }
        }
        try await until("four silent links are left") { silent.count { !$0.isClosed.value } == 4 }
        #expect(acceptor.counts.links <= 4 && acceptor.counts.placed == 0)
        time.advance(by: .seconds(10))
        try await until("their time is over") { silent.allSatisfy(\.isClosed.value) }
        come.finish()
        await serving.value
        #expect(acceptor.counts.links == 0)
    }

    @Test func aGuestThatGivesWayIsToldWhy() async throws {
        let acceptor = Acceptor(AcceptingPlan.Configuration(places: 1), time: time)
        let (links, come) = AsyncStream<any Link>.makeStream()
        let told = Shared<[FerryError.Code]>([])
        let greeted = Shared(0)
        let serving = Task {
            await acceptor.serve(links) { comer in
                guard let door = comer.link as? Door else { return }
                comer.onReplaced { error in
                    told.change { $0.append(error.code) }
                    door.close()
                }
                do throws(FerryError) { try comer.greeted(as: door.peer) } catch {
                    told.change { $0.append(error.code) }
                }
                greeted.change { $0 += 1 }
                if case .address("proven") = door.source { comer.proved() }
                await door.wait()
            }
        }
        let (guest, proven, late) = (Door(.address("guest")), Door(.address("proven")), Door(.address("late")))
        come.yield(guest)
        try await until("the guest is there") { greeted.value == 1 }
        come.yield(proven)
        try await until("the guest gives way") { told.value == [.noPlace] && guest.isClosed.value }
        come.yield(late)
        try await until("the third is refused") { told.value == [.noPlace, .noPlace] }
        #expect(!proven.isClosed.value)
        time.advance(by: .seconds(5))
        try await until("its farewell is over") { late.isClosed.value }
        proven.close()
        come.finish()
        await serving.value
    }
}
