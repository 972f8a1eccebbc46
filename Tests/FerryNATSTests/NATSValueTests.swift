#if NATS
    import Ferry
    @testable import FerryNATS
    import TestSupport
    import Testing

    /// What is decided without a server.
    @Suite(.tags(.records)) struct NATSValueTests {
        @Test func aStreamThatLosesSomethingIsRefused() throws {
            let stream = NATSStream("records", subjects: ["ferry.>"])
            var good = NATSStream.Found()
            good.subjects = ["ferry.>"]
            good.duplicateWindow = 600_000_000_000
            try stream.check(good)
            let changes: [(String, (inout NATSStream.Found) -> Void)] = [
                ("discard=new", { $0.refusesNew = false }), ("in the server's memory", { $0.isOnDisk = false }),
                ("--ack", { $0.answers = false }), ("sealed", { $0.isSealed = true }),
                ("max-msgs-per-subject", { $0.messagesPerSubject = 5 }),
                ("dupe-window=600s", { $0.duplicateWindow = 599_999_999_999 }),
                ("--subjects=ferry.a,ferry.>", { $0.subjects = ["ferry.a"] }),
            ]
            for (words, change) in changes {
                var found = good
                change(&found)
                do {
                    try stream.check(found)
                    Issue.record("\(words): taken")
                } catch {
                    #expect(error.code == .natsWrongShape && error.message.contains(words), "\(error)")
                }
            }
        }

        @Test(arguments: [
            (">", "a", true), (">", "a.>", true), ("a.>", "a.b.c", true), ("a.>", "a", false), ("a.>", "b.>", false),
            ("a.*", "a.b", true), ("a.*", "a.>", false), ("a.*", "a.b.c", false), ("a.b", "a.*", false),
            ("*.b", "a.b", true), ("a", "a", true), ("a.b", "a", false),
        ])
        func subjectsCover(_ wide: String, _ narrow: String, _ covers: Bool) {
            #expect(NATSStream.covers(wide, narrow) == covers)
        }

        @Test(arguments: [
            ("a", true), ("a.b-c._%2E", true), ("ä.ß", true), ("", false), (".", false), ("a.", false), (".a", false),
            ("a..b", false), ("a b", false), ("a.\u{7F}", false), ("a\n", false), ("a.*", false), ("a.>", false),
            ("*", false),
        ])
        func onlySubjectsArePublishedTo(_ text: String, _ isSubject: Bool) {
            #expect(NATSMessage.isSubject(text) == isSubject)
        }

        @Test func aServerThatMayHaveLostSomethingIsNoticed() {
            func state(_ last: UInt64, _ leader: String? = nil, _ created: Int64 = 1) -> NATSStream.State {
                var state = NATSStream.State()
                state.lastSequence = last
                state.leader = leader
                state.created = created
                return state
            }
            var watch = NATSServerWatch()
            #expect(watch.look("A", state(5)) == .steady)
            #expect(watch.look("A", state(7)) == .steady)
            #expect(watch.look("B", state(7)) == .mayHaveLost("the server has restarted, or is another one"))
            #expect(watch.look("B", state(7)) == .steady)
            watch.answered(9)
            #expect(watch.look("B", state(8)) == .mayHaveLost("the stream ends at 8, after 9"))
            // Told once.
            #expect(watch.look("B", state(8)) == .steady)
            // What is answered for while the question is on its way may have come after it.
            watch.answered(8)
            watch.ask()
            watch.answered(9)
            #expect(watch.look("B", state(8)) == .steady)
            watch.ask()
            #expect(watch.look("B", state(8)) == .mayHaveLost("the stream ends at 8, after 9"))
            #expect(watch.look("B", state(8, "n1")) == .mayHaveLost("the stream's leader is n1, after none"))
            #expect(watch.look("B", state(8, "n1")) == .steady)
            #expect(watch.look("B", state(8, "n2")) == .mayHaveLost("the stream's leader is n2, after n1"))
            #expect(watch.look("B", state(0, "n2", 2)) == .mayHaveLost("the stream was made anew"))
            #expect(watch.look("B", state(0, "n2", 2)) == .steady)
        }

        @Test func bucketsWithoutExpiryAreRefused() throws {
            try NATSBucket.check("b", .seconds(2), found: 2_000_000_000)
            for found: Int64 in [0, -1, 1_999_000_000] {
                #expect(throws: FerryError.self) { try NATSBucket.check("b", .seconds(2), found: found) }
            }
        }

        @Test func configurationsAreChecked() throws {
            var configuration = NATSConfiguration(servers: ["nats://ada:secret@[::1]:4222", "b"])
            try configuration.check()
            #expect(configuration.publicServers == "nats://[::1]:4222, b")
            configuration.certificateFile = "a"
            #expect(throws: FerryError.self) { try configuration.check() }
            configuration.keyFile = "b"
            try configuration.check()
            configuration.requestTimeout = .zero
            #expect(throws: FerryError.self) { try configuration.check() }
            #expect(throws: FerryError.self) { try NATSConfiguration(servers: []).check() }
        }
    }
#endif
