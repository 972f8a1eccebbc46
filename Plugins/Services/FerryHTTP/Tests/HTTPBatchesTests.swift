#if HTTP
    import Ferry
    import FerryFleet
    import TestSupport
    import Testing

    @testable import FerryHTTP

    @Suite(.tags(.records)) struct HTTPBatchesTests {
        private func batches(_ change: (inout HTTPConfiguration) -> Void = { _ in }) throws -> HTTPBatches {
            var configuration = try HTTPConfiguration("http://a")
            configuration.maximumRequests = 2
            configuration.maximumBatch = 4
            configuration.maximumBatchBytes = 100
            configuration.maximumInFlight = 16
            change(&configuration)
            return HTTPBatches(configuration)
        }

        private let start = Timestamp.zero
        private let error = FerryError(.httpFailed, "Gone.")

        private func words(_ answers: HTTPBatches.Answers) -> [String] {
            answers.map { token, answer in
                let word =
                    switch answer {
                    case .taken: "taken"
                    case .full: "full"
                    case .gone: "gone"
                    case .unanswered: "unanswered"
                    case .refused: "refused"
                    }
                return "\(token) \(word)"
            }
        }

        private func next(_ batches: inout HTTPBatches) throws -> HTTPBatches.Request {
            let request = batches.next()
            return try #require(request)
        }

        private func add(_ tokens: ClosedRange<UInt64>, _ batches: inout HTTPBatches) {
            for token in tokens {
                let answer = batches.add(token, [1], at: start)
                #expect(answer == nil)
            }
        }

        private func status(_ status: Int, retryAfter: Duration? = nil) -> HTTPBatches.Reply {
            .status(status, text: "", retryAfter: retryAfter)
        }

        @Test func whatComesWhileRequestsAreOnTheirWayGoesTogether() throws {
            var batches = try batches()
            var requests: [HTTPBatches.Request] = []
            for token: UInt64 in 1...9 {
                add(token...token, &batches)
                while let request = batches.next() { requests.append(request) }
            }
            #expect(requests.map { $0.events.map(\.token) } == [[1], [2]])
            let answers = batches.ended(requests[0].number, status(204), at: start)
            #expect(words(answers) == ["1 taken"])
            let third = try next(&batches)
            #expect(third.events.map(\.token) == [3, 4, 5, 6])
            let fourth = batches.next()
            #expect(fourth == nil && batches.count == 8)
        }

        @Test func aRequestHasNoMoreBytesThanItMayButForOneLongEvent() throws {
            var batches = try batches { $0.maximumRequests = 1 }
            for (token, size) in [(1, 1), (2, 60), (3, 60), (4, 500), (5, 1)] as [(UInt64, Int)] {
                let answer = batches.add(token, [UInt8](repeating: 1, count: size), at: start)
                #expect(answer == nil)
            }
            var all: [[UInt64]] = []
            while let request = batches.next() {
                all.append(request.events.map(\.token))
                _ = batches.ended(request.number, status(200), at: start)
            }
            #expect(all == [[1, 2], [3], [4], [5]])
        }

        @Test func aRefusedEventIsFoundByHalves() throws {
            var batches = try batches { $0.maximumRequests = 1 }
            add(1...4, &batches)
            var answers: [String] = []
            while let request = batches.next() {
                let isBad = request.events.contains { $0.token == 3 }
                answers += words(batches.ended(request.number, status(isBad ? 413 : 200), at: start))
            }
            #expect(answers.sorted() == ["1 taken", "2 taken", "3 refused", "4 taken"] && batches.count == 0)
        }

        @Test(
            "A status is an answer",
            arguments: [
                (200, "taken"), (204, "taken"), (299, "taken"), (301, "gone"), (308, "gone"), (400, "refused"),
                (401, "gone"), (403, "gone"), (404, "gone"), (405, "gone"), (408, "unanswered"), (409, "refused"),
                (410, "gone"), (413, "refused"), (422, "refused"), (425, "unanswered"), (429, "full"),
                (500, "unanswered"), (502, "unanswered"), (503, "full"), (504, "unanswered"), (507, "full"),
                (100, "unanswered"), (600, "unanswered"), (0, "unanswered"),
            ])
        func statuses(_ code: Int, _ word: String) throws {
            var batches = try batches()
            add(1...1, &batches)
            let request = try next(&batches)
            let answers = batches.ended(request.number, status(code), at: start)
            #expect(words(answers) == ["1 \(word)"])
            // What is about the server holds all back, and what is about the event nothing.
            let isHeld = batches.add(2, [1], at: start) != nil
            #expect(isHeld == !["taken", "refused"].contains(word))
        }

        @Test func afterTroubleNothingWaitsAndPausesDouble() throws {
            var batches = try batches { $0.maximumRequests = 1 }
            add(1...6, &batches)
            let request = try next(&batches)
            // Those that were not sent cannot have arrived.
            let answers = batches.ended(request.number, .unanswered(error), at: start)
            #expect(
                words(answers) == ["1 unanswered", "2 unanswered", "3 unanswered", "4 unanswered", "5 gone", "6 gone"])
            let following = batches.next()
            #expect(batches.count == 0 && following == nil)
            var now = start
            var pauses: [Duration] = []
            for token: UInt64 in 7...14 {
                var pause = Duration.zero
                while let answer = batches.add(token, [1], at: now + pause) {
                    #expect(answer.isToRepeat)
                    pause += .milliseconds(250)
                }
                pauses.append(pause)
                now = now + pause
                let request = try next(&batches)
                _ = batches.ended(request.number, .gone(error), at: now)
            }
            #expect(pauses == [0.25, 0.5, 1, 2, 4, 8, 15, 15].map { Duration.seconds($0) })
        }

        @Test("A server says when to come again", arguments: [(30, 30), (0, 0), (-5, 0), (1_000_000, 300)])
        func retryAfter(_ asked: Int, _ given: Int) throws {
            var batches = try batches()
            add(1...1, &batches)
            let request = try next(&batches)
            _ = batches.ended(request.number, status(503, retryAfter: .seconds(asked)), at: start)
            let pause = max(Duration.seconds(given), HTTPBatches.firstPause)
            let early = batches.add(2, [1], at: start + (pause - .milliseconds(1)))
            let later = batches.add(3, [1], at: start + pause)
            #expect(early != nil && later == nil)
        }

        @Test func noMoreAreTakenUpThanMay() throws {
            var batches = try batches { $0.maximumInFlight = 3 }
            let answers = (1...4).map { batches.add($0, [1], at: start) }
            #expect(answers.map { $0 == nil } == [true, true, true, false])
            guard case .full = answers[3] else {
                Issue.record("the answer was \(answers)")
                return
            }
        }

        @Test func aClosedOneAnswersAllAndTakesNothing() throws {
            var batches = try batches { $0.maximumRequests = 1 }
            add(1...6, &batches)
            let request = try next(&batches)
            let closing = batches.close()
            let following = batches.next()
            #expect(words(closing) == ["5 gone", "6 gone"] && following == nil)
            let late = batches.add(7, [1], at: start)
            let ended = batches.ended(request.number, .unanswered(error), at: start)
            #expect(late?.isToRepeat == true && words(ended).count == 4)
            let again = batches.close()
            let later = batches.add(8, [1], at: start + .seconds(3600))
            #expect(again.isEmpty && batches.count == 0 && later?.isToRepeat == true)
        }

        @Test func partsWhoseTimeIsOverAreAnswered() throws {
            var batches = try batches { $0.maximumRequests = 1 }
            add(1...4, &batches)
            let request = try next(&batches)
            #expect(request.deadline == start + .seconds(10))
            let answers = batches.ended(request.number, status(400), at: start + .seconds(11))
            let following = batches.next()
            #expect(words(answers).sorted() == ["1 full", "2 full", "3 full", "4 full"] && following == nil)
        }
    }
#endif
