import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Every state of the roles with every event.
@Suite(.tags(.host)) struct RoleStateTests {
    private static let first = AdvertisingPayload(data: [2, 1, 6])
    private static let other = AdvertisingPayload(data: [2, 1, 4])

    /// Given a wish; when a payload is on the air, cannot be put there without connections, or beside some, and when the
    /// controller has room again; then the next wish, and whether the application is told.
    @Test func advertisingWish() {
        let table:
            [(
                AdvertisingWish, started: (AdvertisingWish, Bool), failed: (AdvertisingWish, Bool),
                full: (AdvertisingWish, Bool), resumed: AdvertisingWish
            )] = [
                (.none, (.none, false), (.none, false), (.none, false), .none),
                (
                    .starting(Self.first), (.started(Self.first), true), (.none, true), (.none, true),
                    .starting(Self.first)
                ),
                (
                    .starting(Self.other), (.starting(Self.other), false), (.starting(Self.other), false),
                    (.starting(Self.other), false), .starting(Self.other)
                ),
                (
                    .started(Self.first), (.started(Self.first), false), (.none, true), (.paused(Self.first), false),
                    .started(Self.first)
                ),
                (
                    .started(Self.other), (.started(Self.other), false), (.started(Self.other), false),
                    (.started(Self.other), false), .started(Self.other)
                ),
                (
                    .paused(Self.first), (.paused(Self.first), false), (.paused(Self.first), false),
                    (.paused(Self.first), false), .started(Self.first)
                ),
            ]
        for row in table {
            var wish = row.0
            #expect(wish.didStart(Self.first) == row.started.1, "\(row.0)")
            #expect(wish == row.started.0, "\(row.0)")
            wish = row.0
            #expect(wish.didFail(Self.first, besideConnections: false) == row.failed.1, "\(row.0)")
            #expect(wish == row.failed.0, "\(row.0)")
            wish = row.0
            #expect(wish.didFail(Self.first, besideConnections: true) == row.full.1, "\(row.0)")
            #expect(wish == row.full.0, "\(row.0)")
            wish = row.0
            wish.resume()
            #expect(wish == row.resumed, "\(row.0)")
        }
    }

    /// Given what the controller advertises; when a command of a series succeeds or fails, as the last or not, and when a
    /// central connects; then the next state, and whether the series is over.
    @Test func advertisingState() {
        let first = Self.first
        let failed = AdvertisingState.changing(to: first, error: .commandDisallowed)
        let table:
            [(
                AdvertisingState, success: AdvertisingState, failure: AdvertisingState, last: AdvertisingState,
                lastFailure: AdvertisingState, connected: AdvertisingState
            )] = [
                (.off, .off, .off, .off, .off, .off),
                (.on(first), .on(first), .on(first), .on(first), .on(first), .off),
                (
                    .changing(to: first, error: nil), .changing(to: first, error: nil), failed, .on(first), .off,
                    .changing(to: first, error: nil)
                ),
                (failed, failed, failed, .off, .off, failed),
                (
                    .changing(to: nil, error: nil), .changing(to: nil, error: nil),
                    .changing(to: nil, error: .commandDisallowed), .off, .off, .changing(to: nil, error: nil)
                ),
            ]
        for row in table {
            for (status, isLast, expected) in [
                (HCIErrorCode.success, false, row.success), (.commandDisallowed, false, row.failure),
                (.success, true, row.last), (.commandDisallowed, true, row.lastFailure),
            ] {
                var state = row.0
                let outcome = state.commandDidEnd(status, isLast: isLast)
                #expect(state == expected, "\(row.0) \(status) \(isLast)")
                #expect((outcome != nil) == (row.0.isChanging && isLast), "\(row.0)")
                let isFailed = row.0 == failed || status != .success
                if let outcome { #expect((outcome.error != nil) == isFailed, "\(row.0)") }
            }
            var state = row.0
            state.centralDidConnect()
            #expect(state == row.connected, "\(row.0)")
        }
    }

    /// Given a scan; when a command of a series succeeds or fails, as the last or not; then the next state, and whether a
    /// failure to start is told.
    @Test(arguments: [false, true]) func scanState(usesList: Bool) {
        let error = HCIErrorCode.commandDisallowed
        let starting = ScanState.starting(usesList: usesList, error: nil)
        let failed = ScanState.starting(usesList: usesList, error: error)
        let on = ScanState.on(usesList: usesList)
        let stopping = ScanState.stopping(usesList: usesList)
        let table: [(ScanState, success: ScanState, failure: ScanState, last: ScanState, lastFailure: ScanState)] = [
            (.off, .off, .off, .off, .off),
            (starting, starting, failed, on, .off),
            (failed, failed, failed, .off, .off),
            (on, on, on, on, on),
            (stopping, stopping, stopping, .off, .off),
        ]
        for row in table {
            for (status, isLast, expected) in [
                (HCIErrorCode.success, false, row.success), (error, false, row.failure), (.success, true, row.last),
                (error, true, row.lastFailure),
            ] {
                var state = row.0
                let told = state.commandDidEnd(status, isLast: isLast)
                #expect(state == expected, "\(row.0) \(status) \(isLast)")
                let isTold = isLast && (row.0 == failed || row.0 == starting && status != .success)
                #expect(told == (isTold ? error : nil), "\(row.0) \(status) \(isLast)")
            }
            #expect(row.0.usesList == (usesList && row.0 != .off), "\(row.0)")
        }
    }

    /// Given the trust in a controller's list; when an attempt with the list or without brings a connection, or its time is over.
    @Test func listTrust() {
        typealias Trust = Initiator.ListTrust
        let table: [(Trust, succeeded: (list: Trust, one: Trust), expired: (list: Trust, one: Trust))] = [
            (.untested, (.proven, .untested), (.doubted, .untested)),
            (.doubted, (.proven, .untested), (.doubted, .untested)),
            (.proven, (.proven, .proven), (.proven, .proven)),
        ]
        for row in table {
            for (usedList, succeeded, expired) in [
                (true, row.succeeded.list, row.expired.list), (false, row.succeeded.one, row.expired.one),
            ] {
                var trust = row.0
                trust.attemptDidSucceed(usedList: usedList)
                #expect(trust == succeeded, "\(row.0) \(usedList)")
                trust = row.0
                trust.attemptDidExpire(usedList: usedList)
                #expect(trust == expired, "\(row.0) \(usedList)")
            }
        }
    }

    /// Given a change of addresses; when a command is sent, answered, or refused by the list.
    @Test func changeOfAddresses() {
        typealias Change = Privacy.Change
        let one = Change.commanding(outstanding: 1, listError: nil)
        let two = Change.commanding(outstanding: 2, listError: nil)
        let failed = Change.commanding(outstanding: 1, listError: .memoryCapacityExceeded)
        let table: [(Change, sent: Change, answered: (Change, String), refused: (Change, String))] = [
            (.none, one, (.none, "-"), (.none, "-")),
            (.silencing(until: 7), one, (.silencing(until: 7), "-"), (.silencing(until: 7), "-")),
            (one, two, (.none, "done"), (.none, "list")),
            (
                two, .commanding(outstanding: 3, listError: nil), (one, "-"), (failed, "-")
            ),
            (
                failed, .commanding(outstanding: 2, listError: .memoryCapacityExceeded), (.none, "list"),
                (.none, "list")
            ),
        ]
        func describe(_ outcome: Privacy.Change.Outcome?) -> String {
            switch outcome {
            case nil: "-"
            case .done: "done"
            case .listFailed: "list"
            }
        }
        for row in table {
            var change = row.0
            change.commandWasSent()
            #expect(change == row.sent, "\(row.0)")
            change = row.0
            #expect(describe(change.commandDidEnd(listError: nil)) == row.answered.1, "\(row.0)")
            #expect(change == row.answered.0, "\(row.0)")
            change = row.0
            #expect(describe(change.commandDidEnd(listError: .memoryCapacityExceeded)) == row.refused.1, "\(row.0)")
            #expect(change == row.refused.0, "\(row.0)")
        }
    }

    /// A check does not take back that a rotation is due.
    @Test func dueOfAddresses() {
        var privacy = Privacy(address: Address(1, .random))
        #expect(privacy.takeDue() == .check)
        for (wanted, next) in [
            ([.check], .check), ([.rotation], .rotation), ([.rotation, .check], .rotation),
            ([.check, .rotation], .rotation), ([.nothing], .nothing),
        ] as [([Privacy.Due], Privacy.Due)] {
            for due in wanted { privacy.require(due) }
            #expect(privacy.due == next)
            #expect(privacy.takeDue() == next)
            #expect(privacy.due == .nothing)
        }
    }

    /// The controller refuses an attempt that the application has given up meanwhile: the application is told.
    @Test func cancelledPeerIsToldWhenAttemptIsRefused() {
        var pair = HostPair(.init())
        pair.start()
        let peer = Address.staticRandom(0xC0_FFEE)
        let isTaken = pair.host(1) { host, now in
            defer {
                host.cancelConnection(to: peer, at: now)
                host.connectCommandDidFail(.commandDisallowed, at: now)
            }
            return host.connect(to: peer, at: now)
        }
        #expect(isTaken)
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .connectionFailed(peer, .commandDisallowed) = $0 { true } else { false }
            })
        #expect(pair.host(1) { host, _ in host.initiator.attempt == nil })
    }
}
