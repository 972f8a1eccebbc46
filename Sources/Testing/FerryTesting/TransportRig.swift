import Ferry
import Synchronization

/// The checks of ``TransportConformance``.
final class TransportRig: Sendable {
    private let sides: TransportConformance.Sides
    private let time: ConformanceTime
    private let name: String
    private let opened = Mutex<[any Link]>([])
    /// Long enough for the fastest to be found, short enough to be waited for.
    private static let shortly = Duration.milliseconds(300)

    /// A way to end listening.
    enum End { case closing, releasing, cancelling }

    /// Both ends of a link, open, with what they are told.
    struct Meeting: Sendable {
        let near: any Link
        let far: any Link
        let nearWitness: LinkWitness
        let farWitness: LinkWitness
    }

    init(
        _ sides: TransportConformance.Sides, _ time: ConformanceTime, _ requirement: TransportConformance.Requirement
    ) {
        self.sides = sides
        self.time = time
        name = requirement.rawValue
    }

    func tearDown() async {
        let links = opened.withLock { links in
            defer { links = [] }
            return links
        }
        for link in links { link.close() }
        await time.pass(.milliseconds(50))
    }

    // MARK: Steps

    private func listen() async throws -> LinkListener {
        let transport = sides.listening
        return try await run("listen") { try await transport.listen() }
    }

    /// Runs a step, which is to come out well.
    private func run<Value: Sendable>(
        _ what: String, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        do { return try await time.run(name, what, body) } catch let error as FerryError {
            throw ConformanceFailure(name, "\(what) threw \(error)")
        }
    }

    private func connect(_ transport: any Transport) async throws -> any Link {
        let timeout = time.timeout
        let link = try await run("connect") { try await transport.connect(timeout: timeout) }
        opened.withLock { $0.append(link) }
        return link
    }

    private func makeConnecting() async throws -> any Transport {
        let make = sides.makeConnecting
        return try await run("the connecting transport", make)
    }

    private func take(from listener: LinkListener) async throws -> any Link {
        let link = try await run("the listener's link") { () -> (any Link)? in
            for await link in listener.links { return link }
            return nil
        }
        guard let link else { throw ConformanceFailure(name, "the stream of links ended") }
        opened.withLock { $0.append(link) }
        return link
    }

    /// Connects, and has a chunk go each way.
    private func meet(_ listener: LinkListener, by transport: any Transport, _ mark: UInt8 = 1) async throws -> Meeting
    {
        let near = try await connect(transport)
        return try await meet(listener, over: near, mark)
    }

    private func meet(_ listener: LinkListener, over near: any Link, _ mark: UInt8 = 1) async throws -> Meeting {
        let nearWitness = LinkWitness()
        let farWitness = LinkWitness()
        near.activate(nearWitness)
        // Some listeners look at the first chunk before they hand the link over.
        try await send([mark, 0], over: near)
        let far = try await take(from: listener)
        far.activate(farWitness)
        let meeting = Meeting(near: near, far: far, nearWitness: nearWitness, farWitness: farWitness)
        try await expect([[mark, 0]], farWitness, "the listening end")
        try await send([mark, 1], over: far)
        try await expect([[mark, 1]], nearWitness, "the connecting end")
        return meeting
    }

    private func send(_ chunk: [UInt8], over link: any Link) async throws {
        let failure = Mutex<FerryError?>(nil)
        try await time.wait(name, for: "space for a chunk") {
            do throws(FerryError) { return try link.trySend(chunk.span.bytes) } catch {
                failure.withLock { $0 = error }
                return true
            }
        }
        if let error = failure.withLock({ $0 }) {
            throw ConformanceFailure(name, "trySend on an open link threw \(error)")
        }
    }

    private func expect(_ chunks: [[UInt8]], _ witness: LinkWitness, _ end: String) async throws {
        try await time.wait(name, for: "\(chunks) at \(end); \(witness.chunks) came") {
            witness.chunks.count >= chunks.count
        }
        try require(witness.chunks == chunks, name, "\(witness.chunks) came at \(end) in place of \(chunks)")
    }

    private func expectEnd(_ witness: LinkWitness, _ whose: String) async throws {
        try await time.wait(name, for: "the end at \(whose)") { !witness.reasons.isEmpty }
    }

    /// Expects `connect` to throw, and none but these.
    private func expectNoLink(
        _ what: String, _ codes: [FerryError.Code] = [], _ connect: @escaping @Sendable () async throws -> any Link
    ) async throws {
        let link: any Link
        do { link = try await time.run(name, "\(what) to throw", connect) } catch let error as FerryError {
            try require(codes.isEmpty || codes.contains(error.code), name, "\(what) threw \(error)")
            return
        }
        // A listener may have been gone before the connection was looked at: then the link ends at once.
        let witness = LinkWitness()
        link.activate(witness)
        opened.withLock { $0.append(link) }
        guard codes.isEmpty else { throw ConformanceFailure(name, "\(what) gave a link to \(link.peer)") }
        try await expectEnd(witness, "\(what), which gave a link although no side listened")
    }

    // MARK: Meeting

    func meetsPeers(atOnce count: Int) async throws {
        let listener = try await listen()
        var meetings: [Meeting] = []
        for index in 0..<count {
            meetings.append(try await meet(listener, by: try await makeConnecting(), UInt8(index + 1)))
        }
        for (index, meeting) in meetings.enumerated() {
            try await send([UInt8(index + 1), 2], over: meeting.near)
            try await send([UInt8(index + 1), 3], over: meeting.far)
        }
        for (index, meeting) in meetings.enumerated() {
            let mark = UInt8(index + 1)
            try await expect([[mark, 0], [mark, 2]], meeting.farWitness, "link \(index)'s listening end")
            try await expect([[mark, 1], [mark, 3]], meeting.nearWitness, "link \(index)'s connecting end")
        }
        // One that ends leaves the others alone.
        guard count > 1 else { return listener.close() }
        meetings[0].near.close()
        try await expectEnd(meetings[0].farWitness, "the end of the first peer's link")
        for meeting in meetings.dropFirst() {
            try await send([9], over: meeting.near)
            try await send([9], over: meeting.far)
        }
        for (index, meeting) in meetings.enumerated().dropFirst() {
            let mark = UInt8(index + 1)
            try await expect([[mark, 0], [mark, 2], [9]], meeting.farWitness, "link \(index), after another's end")
            try await expect([[mark, 1], [mark, 3], [9]], meeting.nearWitness, "link \(index), after another's end")
        }
        listener.close()
    }

    func meetsPeersInTurn() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        for index in 0..<5 {
            let meeting = try await meet(listener, by: transport, UInt8(index + 1))
            let (leaver, left) =
                index % 2 == 0 ? (meeting.near, meeting.farWitness) : (meeting.far, meeting.nearWitness)
            leaver.close()
            try await expectEnd(left, "the other side")
            meeting.near.close()
            meeting.far.close()
            try await expectEnd(meeting.nearWitness, "the connecting end")
            await time.pass(.milliseconds(50))
        }
        listener.close()
    }

    func boundsChunks() async throws {
        let listener = try await listen()
        let meeting = try await meet(listener, by: try await makeConnecting())
        // A refusal must not depend on an ATT_MTU exchange, so let that finish first.
        await time.pass(.milliseconds(200))
        for link in [meeting.near, meeting.far] {
            let maximum = link.maximumChunkSize
            for (size, code) in [(0, FerryError.Code.emptyChunk)]
                + [maximum + 1, 2 * maximum, maximum + 65_536].map({ ($0, FerryError.Code.chunkTooLarge) })
            {
                var thrown: FerryError?
                do throws(FerryError) { _ = try link.trySend([UInt8](repeating: 1, count: size).span.bytes) } catch {
                    thrown = error
                }
                try require(
                    thrown?.code == code, name,
                    "trySend of \(size) bytes with maximumChunkSize \(maximum) threw \(thrown.map { "\($0)" } ?? "nothing")"
                )
            }
        }
        let whole = [UInt8](repeating: 5, count: meeting.near.maximumChunkSize)
        try await send(whole, over: meeting.near)
        try await send([6], over: meeting.far)
        try await expect([[1, 0], whole], meeting.farWitness, "the listening end, after chunks that were refused")
        try await expect([[1, 1], [6]], meeting.nearWitness, "the connecting end, after chunks that were refused")
        listener.close()
    }

    func findsNobody() async throws {
        let transport = try await makeConnecting()
        for timeout in [Duration.zero, Self.shortly] {
            try await expectNoLink(
                "connect without a peer", [.peerNotFound, .timedOut, .disconnected, .transportUnavailable]
            ) { try await transport.connect(timeout: timeout) }
        }
    }

    func cancelsConnecting() async throws {
        let transport = try await makeConnecting()
        let timeout = time.timeout * 1000
        let outcome = Mutex<Result<any Link, FerryError>?>(nil)
        let task = Task {
            do throws(FerryError) {
                let link = try await transport.connect(timeout: timeout)
                outcome.withLock { $0 = .success(link) }
            } catch {
                outcome.withLock { $0 = .failure(error) }
            }
        }
        await time.pass(.milliseconds(100))
        try require(
            outcome.withLock { $0 == nil }, name, "connect ended although no peer was there, long before its time")
        task.cancel()
        try await time.wait(name, for: "connect to end after its task was cancelled") {
            outcome.withLock { $0 != nil }
        }
        switch outcome.withLock({ $0 }) {
        case .failure(let error)?:
            try require(error.code == .cancelled, name, "connect was cancelled and threw \(error)")
        default: throw ConformanceFailure(name, "connect was cancelled and gave a link")
        }
    }

    // MARK: Listening

    func stopsListening(by end: End) async throws {
        let transport = try await makeConnecting()
        let meeting = try await meetAndStop(transport, end)
        try await expectNoLink("connect after listening has ended") {
            try await transport.connect(timeout: Self.shortly)
        }
        let other = try await makeConnecting()
        try await expectNoLink("another peer's connect after listening has ended") {
            try await other.connect(timeout: Self.shortly)
        }
        try await send([7], over: meeting.near)
        try await send([8], over: meeting.far)
        try await expect([[1, 0], [7]], meeting.farWitness, "a link that was taken before")
        try await expect([[1, 1], [8]], meeting.nearWitness, "a link that was taken before")
    }

    private func meetAndStop(_ transport: any Transport, _ end: End) async throws -> Meeting {
        let listener = try await listen()
        let meeting = try await meet(listener, by: transport)
        guard end != .releasing else { return meeting }
        let hasEnded = Mutex(false)
        let links = listener.links
        let task = Task {
            for await link in links { link.close() }
            hasEnded.withLock { $0 = true }
        }
        await time.pass(.milliseconds(20))
        if end == .closing { listener.close() } else { task.cancel() }
        try await time.wait(name, for: "the stream of links to end") { hasEnded.withLock { $0 } }
        // What holds after the release of the listener is another check.
        if end == .cancelling { kept.withLock { $0 = listener } }
        return meeting
    }

    private let kept = Mutex<LinkListener?>(nil)

    func closesUntaken() async throws {
        let listener = try await listen()
        let near = try await connect(try await makeConnecting())
        let witness = LinkWitness()
        near.activate(witness)
        try await send([1], over: near)
        await time.pass(.milliseconds(200))
        try require(witness.reasons.isEmpty, name, "a link ended before anybody could take it: \(witness.reasons)")
        listener.close()
        try await expectEnd(witness, "the peer of a link that was not taken")
    }

    func listensAgain() async throws {
        let transport = try await makeConnecting()
        for index in 0..<3 {
            let listener = try await listen()
            let meeting = try await meet(listener, by: transport, UInt8(index + 1))
            meeting.near.close()
            try await expectEnd(meeting.farWitness, "the listening end")
            meeting.far.close()
            listener.close()
            await time.pass(.milliseconds(50))
        }
    }

    // MARK: Ending

    func tellsEnds() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        for nearCloses in [true, false] {
            let meeting = try await meet(listener, by: transport)
            let (closes, told) =
                nearCloses ? (meeting.near, meeting.farWitness) : (meeting.far, meeting.nearWitness)
            closes.close()
            try await expectEnd(told, "the side that did not close")
            let reason = told.reasons[0]
            try require(reason.code != .closed, name, "the side that did not close was told \(reason)")
            try require(!reason.message.isEmpty, name, "the end has no reason in words")
            let ended = nearCloses ? meeting.far : meeting.near
            // A link that reconnects is suspended, and has no reason yet.
            let isSuspended = (try? refusal(ended)) == nil
            for when in isSuspended ? [] : ["after the end", "after close()"] {
                let thrown = try refusal(ended)
                try require(
                    thrown.code == reason.code, name, "a link that ended with \(reason) threw \(thrown) \(when)")
                ended.close()
            }
            meeting.near.close()
            meeting.far.close()
            try await expectEnd(meeting.nearWitness, "the connecting end")
            await time.pass(.milliseconds(50))
        }
        listener.close()
    }

    /// Why an ended link sends nothing.
    private func refusal(_ link: any Link) throws -> FerryError {
        do throws(FerryError) { _ = try link.trySend(([66] as [UInt8]).span.bytes) } catch { return error }
        throw ConformanceFailure(name, "trySend on a link that has ended did not throw")
    }

    func closesReleased() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        let timeout = time.timeout
        let farWitness = LinkWitness()
        let far = Mutex<(any Link)?>(nil)
        try await run("a link that is released") {
            let near = try await transport.connect(timeout: timeout)
            near.activate(LinkWitness())
            while try !near.trySend(([1] as [UInt8]).span.bytes) { try await Task.sleep(for: .milliseconds(1)) }
            for await link in listener.links {
                far.withLock { $0 = link }
                break
            }
            // Only now has the other side the link.
            withExtendedLifetime(near) {}
        }
        far.withLock { $0 }?.activate(farWitness)
        try await expectEnd(farWitness, "the peer of a link that was released")
        listener.close()
    }

    func leavesTheNextAlone() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        let first = try await meet(listener, by: transport)
        first.near.close()
        try await expectEnd(first.farWitness, "the listening end")
        first.far.close()
        try await expectEnd(first.nearWitness, "the connecting end")
        await time.pass(.milliseconds(50))
        let second = try await meet(listener, by: transport, 2)
        for link in [first.near, first.far] {
            let isRefused: Bool
            do throws(FerryError) {
                _ = try link.trySend(([66] as [UInt8]).span.bytes)
                isRefused = false
            } catch { isRefused = true }
            try require(isRefused, name, "trySend on a link that has ended did not throw")
            link.setReceiving(false)
            link.close()
            _ = link.maximumChunkSize
        }
        await time.pass(.milliseconds(100))
        try await send([7], over: second.near)
        try await send([8], over: second.far)
        try await expect([[2, 0], [7]], second.farWitness, "the next link")
        try await expect([[2, 1], [8]], second.nearWitness, "the next link")
        try require(
            second.nearWitness.reasons.isEmpty && second.farWitness.reasons.isEmpty, name,
            "a link ended at a request to the one before")
        listener.close()
    }

    // MARK: Knowing

    func knowsPeers() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        let first = try await meet(listener, by: transport)
        let (nearPeer, farPeer) = (first.near.peer, first.far.peer)
        try require(!nearPeer.name.isEmpty && !farPeer.name.isEmpty, name, "a peer has no name")
        first.near.close()
        try await expectEnd(first.farWitness, "the listening end")
        first.far.close()
        try await expectEnd(first.nearWitness, "the connecting end")
        try require(
            first.near.peer == nearPeer && first.far.peer == farPeer, name, "after the end a link names another peer")
        await time.pass(.milliseconds(50))
        guard nearPeer.certainty > .connection else { return listener.close() }
        let timeout = time.timeout
        let again = try await run("connect(to:) the peer that was met before") {
            try await transport.connect(to: nearPeer, timeout: timeout)
        }
        opened.withLock { $0.append(again) }
        try require(nearPeer.recognizes(again.peer), name, "connect(to: \(nearPeer)) gave a link to \(again.peer)")
        let second = try await meet(listener, over: again, 2)
        if farPeer.certainty > .connection {
            try require(farPeer.recognizes(second.far.peer), name, "\(farPeer) came again as \(second.far.peer)")
        }
        listener.close()
    }

    func takesNobodyElse() async throws {
        let listener = try await listen()
        let transport = try await makeConnecting()
        let brief = PeerIdentity("was here once", certainty: .connection)
        let timeout = time.timeout
        try await expectNoLink("connect(to: \(brief))", [.peerNotFound]) {
            try await transport.connect(to: brief, timeout: timeout)
        }
        let absent = PeerIdentity("F0:00:00:00:00:01/random", certainty: .address)
        try await expectNoLink("connect(to: \(absent))", [.peerNotFound, .timedOut]) {
            try await transport.connect(to: absent, timeout: Self.shortly)
        }
        listener.close()
    }
}
