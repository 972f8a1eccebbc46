#if NATS
    import Ferry
    @testable import FerryNATS
    import TestSupport
    import Testing

    /// What is decided without a server.
    @Suite(.tags(.records)) struct NATSValueTests {
        @Test func aStreamThatLosesSomethingIsRefused() throws {
            let stream = NATSStream("records", subjects: ["ferry.>"])
            let good = NATSStream.Found(
                subjects: ["ferry.>"], traits: [.refusesNew, .onDisk, .answers], messagesPerSubject: -1,
                duplicateWindow: 600_000_000_000)
            try stream.check(good)
            let changes: [(String, (inout NATSStream.Found) -> Void)] = [
                ("discard=new", { $0.traits.remove(.refusesNew) }),
                ("in the server's memory", { $0.traits.remove(.onDisk) }),
                ("--ack", { $0.traits.remove(.answers) }), ("sealed", { $0.traits.insert(.sealed) }),
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

        @Test(
            arguments: [
                ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:01.5Z", 1_500_000_000),
                ("2026-11-24T09:12:01.250123456Z", 1_795_511_521_250_123_456),
                ("2000-02-29T23:59:59.000000001Z", 951_868_799_000_000_001),
                ("", nil), ("Z", nil), ("2026-11-24T09:12:01", nil), ("2026-11-24T09:12:01.Z", nil),
                ("2026-11-24T09:12:01.1.2Z", nil),
                ("2026-11-24T09:12:01.1234567890Z", nil), ("2026-11-24T09:12:01.-5Z", nil),
                ("1969-12-31T23:59:59Z", nil),
                ("yesterday", nil),
            ] as [(String, UInt64?)])
        func dates(_ text: String, _ nanoseconds: UInt64?) {
            #expect(NATSStored.nanoseconds(text) == nanoseconds)
        }

        @Test(
            arguments: [
                // As servers write it by hand, and as they write it from values.
                (#"{"stream":"KV_a", "seq":7}"#, (7, false), nil), (#"{"stream":"KV_a","seq":70}"#, (70, false), nil),
                (#"{"stream":"a", "seq":9999999999999999999}"#, (9_999_999_999_999_999_999, false), nil),
                (#"{"stream":"a","seq":18446744073709551615}"#, (.max, false), nil),
                (#"{"stream":"a","domain":"hub","seq":18446744073709551615}"#, (.max, false), nil),
                (#"{"stream":"a","seq":18446744073709551616}"#, nil, .natsFailed),
                (#"{"stream":"a", "seq":12,"duplicate": true}"#, (12, true), nil),
                (#"{"stream":"a","duplicate":true,"seq":12}"#, (12, true), nil),
                (#"{"stream":"a","seq":12,"domain":"hub"}"#, (12, false), nil),
                (#"{"stream":"a\"b", "seq":3}"#, (3, false), nil), (#"{"seq":4}"#, (4, false), nil),
                (
                    #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"a","seq":0}"#,
                    nil, .natsConflict
                ),
                (
                    #"{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}"#,
                    nil, .natsNotReady
                ),
                (#"{"error":{}}"#, nil, .natsFailed), ("", nil, .natsFailed), ("+OK", nil, .natsFailed),
                (#"{"seq":0}"#, nil, .natsFailed), (#"{"seq":-1}"#, nil, .natsFailed),
                (#"{"stream":"a", "seq":}"#, nil, .natsFailed), (#"{"stream":"a", "seq":7"#, nil, .natsFailed),
                (#"{"stream":"a", "seq":0}"#, nil, .natsFailed), (#"{"stream":"a", "seq":7x}"#, nil, .natsFailed),
            ] as [(String, (UInt64, Bool)?, FerryError.Code?)])
        func answersToWhatIsPublished(_ text: String, _ expected: (UInt64, Bool)?, _ code: FerryError.Code?) {
            switch Array(text.utf8).withUnsafeBytes(PublishAnswer.read) {
            case .success(let receipt):
                #expect(receipt.sequence == expected?.0 && receipt.isDuplicate == expected?.1, "\(receipt)")
            case .failure(let failure): #expect(failure.error("It").code == code, "\(failure)")
            }
        }

        @Test func eachAnswerIsOneWaitersUntilItsDeadline() {
            var slots = AnswerSlots<String>()
            func at(_ seconds: Int64) -> Timestamp { .zero + .seconds(seconds) }
            #expect(slots.nextDeadline == nil && slots.end(0) == nil)
            let a = slots.expect("a", until: at(3))
            let b = slots.expect("b", until: at(2))
            #expect(slots.nextDeadline == at(2) && slots.takeDue(at: at(1)).isEmpty)
            #expect(slots.takeDue(at: at(2)) == ["b"] && slots.nextDeadline == at(3))
            // Its place is another's, and its answer nobody's.
            let c = slots.expect("c", until: at(9))
            #expect(c != b && slots.end(b) == nil && slots.end(a) == "a" && slots.end(a) == nil)
            #expect(slots.nextDeadline == at(9) && slots.end(c) == "c" && slots.nextDeadline == nil)
            var seen: Set<UInt64> = [a, b, c]
            for number in 0..<100_000 {
                let next = slots.expect("\(number)", until: at(1))
                #expect(seen.insert(next).inserted && slots.end(next) == "\(number)")
            }
            #expect(slots.takeDue(at: at(100)).isEmpty && slots.end(.max) == nil)
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
            #expect(watch.look("B", state(8, "n1")) == .mayHaveLost("the stream's leader is n1, after none"))
            #expect(watch.look("B", state(8, "n1")) == .steady)
            #expect(watch.look("B", state(8, "n2")) == .mayHaveLost("the stream's leader is n2, after n1"))
            #expect(watch.look("B", state(0, "n2", 2)) == .mayHaveLost("the stream was made anew"))
            #expect(watch.look("B", state(0, "n2", 2)) == .steady)
            // What was answered while the state was asked for may not be in it.
            watch.answered(3)
            let before = watch.lastAnswered
            watch.answered(5)
            #expect(watch.look("B", state(4, "n2", 2), answered: before) == .steady)
            #expect(watch.look("B", state(4, "n2", 2)) == .mayHaveLost("the stream ends at 4, after 5"))
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
