#if Seal
    import Ferry
    import FerrySeal
    import FerrySequenced
    import FerryTesting
    import Synchronization
    import TestSupport
    import Testing

    /// Transports whose peers prove keys: what connects is pinned to one, what listens takes a list of them.
    @Suite(.tags(.hostility, .channel), .timeLimit(.minutes(5))) struct SealedTransportTests {
        private static let (a, b, stranger) = (NoiseSealTests.a, NoiseSealTests.b, NoiseSealTests.stranger)
        private typealias Plain = SealedTransport<MemoryAir.Station, LengthPrefixFraming>

        private static func transport(_ air: MemoryAir, _ name: String, _ key: SecretKey) -> Plain {
            SealedTransport(over: air.station(name), framing: LengthPrefixFraming(), as: key, time: air.time)
        }

        private static func identity(_ key: SecretKey) -> PeerIdentity {
            PeerIdentity("\(key.publicKey.fingerprint)", certainty: .key)
        }

        private static func list(_ keys: SecretKey...) throws -> AllowList {
            var list = AllowList()
            for (index, key) in keys.enumerated() { try list.add(key.publicKey, name: "peer \(index)") }
            return list
        }

        @Test func bothSidesNameTheOtherByItsFingerprint() throws {
            let air = MemoryAir(certainty: .connection)
            try air.run {
                let listener = try await Self.transport(air, "peer", Self.b).listen(
                    from: .keys(in: try Self.list(Self.a)), codec: BytesCodec())
                let client = try await Self.transport(air, "me", Self.a).connect(
                    to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                #expect(client.peer == Self.identity(Self.b))
                var channels = listener.channels.makeAsyncIterator()
                let server = try #require(await channels.next())
                // The first message of this handshake may be an old one that an attacker repeats.
                #expect(server.peer.certainty == .connection)
                try await client.send([1])
                var messages = server.messages.makeAsyncIterator()
                #expect(try await messages.next() == [1])
                #expect(server.peer == Self.identity(Self.a))

                // The identity that was kept finds its owner, and nobody else.
                let again = try await Self.transport(air, "me", Self.a).connect(
                    to: client.peer, codec: BytesCodec(), timeout: .unreached)
                #expect(again.peer == client.peer)
                await expect(.invalidConfiguration, "not by key") {
                    _ = try await Self.transport(air, "me", Self.a).connect(
                        to: PeerIdentity("peer", certainty: .address), codec: BytesCodec(), timeout: .unreached)
                }
                for channel in [client, again, server] { channel.close() }
                listener.close()
            }
        }

        private static func expect(
            _ code: FerryError.Code, _ words: String, _ body: () async throws -> Void
        ) async {
            do {
                try await body()
                Issue.record("nothing was thrown; expected \(code)")
            } catch let error as FerryError {
                #expect(error.code == code && error.message.contains(words), "\(error)")
            } catch { Issue.record("\(error)") }
        }
        private func expect(_ code: FerryError.Code, _ words: String, _ body: () async throws -> Void) async {
            await Self.expect(code, words, body)
        }

        @Test(arguments: [true, false]) func anotherAtTheAddressGetsNothing(_ isKept: Bool) throws {
            let air = MemoryAir()
            try air.run {
                // It takes everybody, and has not the key.
                let listener = try await Self.transport(air, "peer", Self.stranger).listen(
                    from: .anyone, codec: BytesCodec())
                let mine = Self.transport(air, "me", Self.a)
                do throws(FerryError) {
                    if isKept {
                        _ = try await mine.connect(to: Self.identity(Self.b), codec: BytesCodec(), timeout: .unreached)
                    } else {
                        _ = try await mine.connect(
                            to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                    }
                    Issue.record("a stranger was taken for the peer")
                } catch {
                    // By IK the stranger cannot read the first message, and says so. By XX it proves its own key.
                    #expect(error.code == (isKept ? .sealStranger : .sealNotAccepted), "\(error)")
                    let words = isKept ? "\(Self.stranger.publicKey)" : "does not have the key that this side expects"
                    #expect(error.message.contains(words), "\(error)")
                }
                listener.close()
                var channels = listener.channels.makeAsyncIterator()
                #expect(await channels.next() == nil)
            }
        }

        @Test func keysThatAreNotInTheListAreRefused() throws {
            let air = MemoryAir()
            try air.run {
                let listener = try await Self.transport(air, "peer", Self.b).listen(
                    from: .keys(in: try Self.list(Self.a)), codec: BytesCodec())
                await Self.expect(.sealNotAccepted, "does not accept this side's key \(Self.stranger.publicKey)") {
                    _ = try await Self.transport(air, "other", Self.stranger).connect(
                        to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                }
                let client = try await Self.transport(air, "me", Self.a).connect(
                    to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                var channels = listener.channels.makeAsyncIterator()
                let server = try #require(await channels.next())
                try await client.send([7])
                var messages = server.messages.makeAsyncIterator()
                #expect(try await messages.next() == [7])
                client.close()
                server.close()
                listener.close()
            }
        }

        /// Both ends say what it was: the one that came by its code's fault, and the one that waits.
        @Test(arguments: BaseFraming.allCases) func aWrongCodeIsToldAtBothEnds(_ base: BaseFraming) throws {
            var generator = SplitMix64(seed: 5)
            let wrong = Invitation(using: &generator)
            let time = VirtualTime()
            let (near, far) = MemoryLink.makePair(maximumChunkSize: 20)
            let a = SealedEnd(
                near, base.session(NoiseSealing(connectingAs: Self.a, to: .invitation(wrong)), id: 1), time: time)
            let b = SealedEnd(
                far,
                base.session(NoiseSealing(acceptingAs: Self.b, from: .invitation(NoiseSealTests.invitation)), id: 9),
                time: time)
            a.send([1, 2, 3])
            for _ in 0..<20 {
                while near.deliver() || far.deliver() {}
                a.take()
                b.take()
                time.advance(by: .milliseconds(100))
            }
            #expect(b.core.closeReason?.code == .sealRefused)
            #expect(a.core.closeReason?.code == .sealNotAccepted, "\(String(describing: a.core.closeReason))")
            #expect(a.core.closeReason?.message.contains("Ask for a new code") == true)
            #expect(a.pending == 0 && b.read.isEmpty)
        }

        @Test func silentLinksKeepNoPeerOut() throws {
            let air = MemoryAir()
            try air.run {
                let listener = try await Self.transport(air, "peer", Self.b).listen(
                    from: .keys(in: try Self.list(Self.a)), codec: BytesCodec(), maximumHandshakes: 4)
                var silent: [any Link] = []
                for _ in 0..<20 { silent.append(try await air.station("nobody").connect(timeout: .unreached)) }
                let client = try await Self.transport(air, "me", Self.a).connect(
                    to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .seconds(2))
                var channels = listener.channels.makeAsyncIterator()
                let server = try #require(await channels.next())
                try await client.send([1])
                var messages = server.messages.makeAsyncIterator()
                #expect(try await messages.next() == [1])
                client.close()
                server.close()
                listener.close()
                withExtendedLifetime(silent) {}
            }
        }

        @Test func aPeerThatNeverAnswersIsGivenUpInTime() throws {
            let air = MemoryAir()
            try air.run {
                let listener = try await air.station("peer").listen()
                let start = air.time.now
                await Self.expect(.timedOut, "has not proven its key") {
                    _ = try await Self.transport(air, "me", Self.a).connect(
                        to: .anyone, codec: BytesCodec(), timeout: .seconds(3))
                }
                #expect(air.time.now - start == .seconds(3))
                listener.close()
            }
        }

        // MARK: Links that reconnect

        private static func reconnecting(
            _ air: MemoryAir, _ name: String, _ key: SecretKey
        ) -> SealedTransport<ReconnectingTransport<MemoryAir.Station>, SequencedFraming> {
            var backoff = ReconnectingTransport<MemoryAir.Station>.Backoff()
            backoff.initial = .milliseconds(1)
            backoff.maximum = .milliseconds(10)
            return SealedTransport(
                over: ReconnectingTransport(
                    over: air.station(name), unrecognizedPeers: .proveTheirKeys, backoff: backoff, time: air.time),
                framing: SequencedFraming(), as: key, time: air.time)
        }

        /// The transport knows its peers for one connection only, and the seal outlives the connection.
        @Test func aLinkGoesOnWithTheKey() throws {
            let air = MemoryAir(certainty: .connection)
            try air.run {
                let listener = try await Self.reconnecting(air, "peer", Self.b).listen(
                    from: .keys(in: try Self.list(Self.a)), codec: BytesCodec())
                let client = try await Self.reconnecting(air, "me", Self.a).connect(
                    to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                var channels = listener.channels.makeAsyncIterator()
                let server = try #require(await channels.next())
                var messages = server.messages.makeAsyncIterator()
                for number in 0..<5 as Range<UInt8> {
                    try await client.send([number])
                    #expect(try await messages.next() == [number])
                    air.breakConnections(to: "peer")
                }
                try await client.send([9])
                #expect(try await messages.next() == [9])
                #expect(client.status.resumptions > 0 && client.peer == Self.identity(Self.b))
                #expect(server.peer == Self.identity(Self.a))
                client.close()
                server.close()
                listener.close()
            }
        }

        /// While the peer is away another offers the same service, with a key of its own.
        @Test func aLinkNeverGoesOnWithAnotherKey() throws {
            let air = MemoryAir(certainty: .connection)
            try air.run {
                let listener = try await Self.reconnecting(air, "peer", Self.b).listen(
                    from: .keys(in: try Self.list(Self.a)), codec: BytesCodec())
                let client = try await Self.reconnecting(air, "me", Self.a).connect(
                    to: .key(Self.b.publicKey), codec: BytesCodec(), timeout: .unreached)
                var channels = listener.channels.makeAsyncIterator()
                let server = try #require(await channels.next())
                try await client.send([1])
                var messages = server.messages.makeAsyncIterator()
                #expect(try await messages.next() == [1])

                let secret = [UInt8]("for the peer alone".utf8)
                let taken = Journal()
                // It takes everybody, sealed, and is there before the peer in the order of the air.
                let evil = try await Self.reconnecting(air, "another", Self.stranger).listen(
                    from: .anyone, codec: BytesCodec())
                let accepting = Task {
                    for await channel in evil.channels {
                        for await result in channel.results { taken.add("\(result)") }
                    }
                }
                air.takeAway("peer")
                await #expect(throws: FerryError.self) { try await client.send(secret, timeout: .unreached) }
                let reason = try #require(await client.closed)
                #expect(
                    [.peerLostState, .disconnected].contains(reason.code)
                        || reason.code.description.hasPrefix("seal."), "\(reason)")
                #expect(!taken.all.contains { $0.contains("success") }, "\(taken.all)")
                evil.close()
                accepting.cancel()
                await accepting.value
                server.close()
                listener.close()
            }
        }
    }

    /// One-time codes: good once, for one key, and each failure says what it was.
    @Suite(.tags(.hostility)) struct InvitationTests {
        private static let codes: [Invitation] = {
            var generator = SplitMix64(seed: 77)
            return (0..<3).map { _ in Invitation(using: &generator) }
        }()

        /// Codes that wait; each is used up by the first key.
        private final class Book: Sendable {
            let state = Mutex<[(code: String, owner: PublicKey?)]>([])

            init(_ codes: [Invitation]) { state.withLock { $0 = codes.map { ($0.code, nil) } } }

            var acceptance: NoiseSealing.Acceptance {
                NoiseSealing.Acceptance.keys { _ in false }.orInvitations {
                    self.state.withLock { $0.compactMap { try? Invitation(code: $0.code) } }
                } claim: { invitation, key in
                    self.state.withLock { state in
                        guard let place = state.firstIndex(where: { $0.code == invitation.code }) else { return false }
                        guard state[place].owner == nil || state[place].owner == key else { return false }
                        state[place].owner = key
                        return true
                    }
                }
            }
        }

        private static func seals(
            _ key: SecretKey, _ code: Invitation, _ acceptance: NoiseSealing.Acceptance
        ) -> (NoiseSeal, NoiseSeal) {
            (
                NoiseSealing(connectingAs: key, to: .invitation(code)).makeSeal(for: NoiseSealTests.exchange()),
                NoiseSealing(acceptingAs: NoiseSealTests.b, from: acceptance).makeSeal(for: NoiseSealTests.exchange())
            )
        }

        @Test func eachOfSeveralCodesIsFound() throws {
            let book = Book(Self.codes)
            for (index, code) in Self.codes.enumerated() {
                let key = testKey(UInt64(100 + index))
                var (near, far) = Self.seals(key, code, book.acceptance)
                try NoiseSealTests.meet(&near, &far)
                #expect(far.peerKey == key.publicKey && near.peerKey == NoiseSealTests.b.publicKey)
                #expect(book.state.withLock { $0[index].owner } == key.publicKey)
            }
        }

        @Test func aUsedCodeLetsNobodyElseIn() throws {
            let book = Book(Self.codes)
            var (near, far) = Self.seals(testKey(100), Self.codes[1], book.acceptance)
            try NoiseSealTests.meet(&near, &far)
            // Its owner comes again, as after a lost connection.
            (near, far) = Self.seals(testKey(100), Self.codes[1], book.acceptance)
            try NoiseSealTests.meet(&near, &far)
            (near, far) = Self.seals(testKey(101), Self.codes[1], book.acceptance)
            let error = try #require(failure { try NoiseSealTests.meet(&near, &far) })
            #expect(error.code == .sealStranger && error.message.contains("another used before it"), "\(error)")
            #expect(error.message.contains("\(testKey(101).publicKey)") && !far.isEstablished)
        }

        @Test func aWrongCodeAndNoCodeAreTold() throws {
            let book = Book(Array(Self.codes.prefix(2)))
            var (near, far) = Self.seals(testKey(100), Self.codes[2], book.acceptance)
            let wrong = try #require(failure { try NoiseSealTests.meet(&near, &far) })
            #expect(wrong.code == .sealRefused && wrong.message.contains("mistyped, was used already, or has expired"))
            (near, far) = Self.seals(testKey(100), Self.codes[2], Book([]).acceptance)
            let none = try #require(failure { try NoiseSealTests.meet(&near, &far) })
            #expect(none.code == .sealStranger && none.message.contains("none waits"), "\(none)")
            (near, far) = Self.seals(testKey(100), Self.codes[2], .keys { _ in true })
            #expect(failure { try NoiseSealTests.meet(&near, &far) }?.code == .sealStranger)
        }

        /// A side that connects to keys of a list shows its own to none of the others.
        @Test func aConnectingSideLooksAtTheKeyBeforeItShowsItsOwn() throws {
            let asked = Mutex<[PublicKey]>([])
            let sealing = NoiseSealing(connectingAs: NoiseSealTests.a, to: .anyone) { key in
                asked.withLock { $0.append(key) }
                return key == NoiseSealTests.b.publicKey
            }
            var near = sealing.makeSeal(for: NoiseSealTests.exchange())
            var far = NoiseSealing(acceptingAs: NoiseSealTests.stranger, from: .anyone).makeSeal(
                for: NoiseSealTests.exchange())
            try far.receiveHandshake(#require(try near.nextHandshakeMessage()))
            let answer = try #require(try far.nextHandshakeMessage())
            let error = try #require(failure { try near.receiveHandshake(answer) })
            #expect(error.code == .sealStranger && error.message.contains("\(NoiseSealTests.stranger.publicKey)"))
            #expect(failure { try near.nextHandshakeMessage() } != nil)
            #expect(asked.withLock { $0 } == [NoiseSealTests.stranger.publicKey])
            near = sealing.makeSeal(for: NoiseSealTests.exchange())
            far = NoiseSealing(acceptingAs: NoiseSealTests.b, from: .anyone).makeSeal(for: NoiseSealTests.exchange())
            try NoiseSealTests.meet(&near, &far)
            #expect(near.isEstablished && asked.withLock { $0.count } == 2)
        }
    }
#endif
