#if BlueZ
    @testable import FerryBlueZ
    import FerryTesting
    import TestSupport
    import Testing

    /// How large the window of values on their way becomes, over links of different speeds.
    @Suite(.tags(.adapter, .gatt)) struct FlowWindowTests {
        /// A link as bluetoothd uses it: a barrier is sent when everything else has been, and answered a little later.
        private struct Radio {
            /// Values a second.
            var rate: Int
            /// How long a barrier takes, in microseconds.
            var answer: UInt64

            func time(_ values: Int) -> UInt64 { UInt64(values) * 1_000_000 / UInt64(rate) }
        }

        /// A sender that sends whatever fits.
        private struct Sender {
            var window: FlowWindow
            var now: UInt64 = 1
            /// How many have not yet gone out.
            var queued = 0
            /// The longest that a value has waited since it was set to 0.
            var longest: UInt64 = 0

            /// Fills the window, and lets everything pass, until the barrier's answer. Returns how many were sent.
            @discardableResult
            mutating func cycle(over radio: Radio) -> Int {
                var sent = 0
                while window.hasSpace {
                    window.take(512)
                    sent += 1
                    _ = window.beginBarrier(at: now)
                }
                queued += sent
                longest = max(longest, radio.time(queued))
                now += radio.time(queued) + radio.answer
                queued = 0
                window.barrierPassed(at: now)
                return sent
            }

            /// Goes on for some seconds. Returns how many values passed in each.
            @discardableResult
            mutating func run(_ seconds: UInt64, over radio: Radio) -> Double {
                let (began, end) = (now, now + seconds * 1_000_000)
                var sent = 0
                while now < end { sent += cycle(over: radio) }
                return Double(sent) * 1_000_000 / Double(now - began)
            }
        }

        struct Case: Sendable, CustomTestStringConvertible {
            let rate: Int
            let answer: UInt64
            /// What the window settles at.
            let capacity: ClosedRange<Int>
            /// How much of the link's speed is used at least.
            let use: Double
            var testDescription: String { "\(rate) values a second, answers after \(answer / 1000) ms" }
        }

        @Test(arguments: [
            // 40 kB/s in values of 512 bytes, as of a phone with 15 ms between connection events.
            Case(rate: 80, answer: 60_000, capacity: 73...77, use: 0.93),
            Case(rate: 20, answer: 100_000, capacity: 32...32, use: 0.93),
            Case(rate: 3, answer: 4_000_000, capacity: 32...32, use: 0.7),
            Case(rate: 400, answer: 30_000, capacity: 385...391, use: 0.96),
            Case(rate: 1200, answer: 25_000, capacity: 1024...1024, use: 0.97),
            Case(rate: 100_000, answer: 1000, capacity: 1024...1024, use: 0.9),
        ])
        func settlesAtWhatPassesInASecond(_ expected: Case) {
            let radio = Radio(rate: expected.rate, answer: expected.answer)
            var sender = Sender(window: FlowWindow(maximum: 1024))
            sender.run(120, over: radio)
            sender.longest = 0
            let speed = sender.run(30, over: radio)
            #expect(expected.capacity.contains(sender.window.capacity), "it is \(sender.window.capacity)")
            #expect(speed >= expected.use * Double(expected.rate), "\(speed) values passed in a second")
            let isSmallest = sender.window.capacity == FlowWindow.minimum
            #expect(sender.longest <= (isSmallest ? radio.time(FlowWindow.minimum) : FlowWindow.delay))
        }

        /// A radio that becomes slow, and fast again.
        @Test func followsTheLink() {
            var sender = Sender(window: FlowWindow(maximum: 1024))
            sender.run(5, over: Radio(rate: 1200, answer: 25_000))
            #expect(sender.window.capacity == 1024)
            // What is on its way already waits; nothing else does.
            let slow = Radio(rate: 80, answer: 60_000)
            sender.cycle(over: slow)
            #expect(sender.window.capacity <= 80)
            sender.longest = 0
            sender.run(10, over: slow)
            #expect(sender.longest <= FlowWindow.delay)
            sender.run(10, over: Radio(rate: 1200, answer: 25_000))
            #expect(sender.window.capacity == 1024)
        }

        /// The first values: a window that nothing is known of is small.
        @Test func beginsSmall() {
            var sender = Sender(window: FlowWindow(maximum: 1024))
            let sent = sender.cycle(over: Radio(rate: 80, answer: 60_000))
            #expect(sent == FlowWindow.beginning)
        }

        /// How quickly a window is answered that a slow sender has filled tells nothing of the link, and neither does the time
        /// that the sender took.
        @Test func aSlowSenderChangesNothing() {
            var window = FlowWindow(maximum: 1024)
            var now: UInt64 = 0
            for pause: UInt64 in [100_000, 5000, 3_000_000] {
                for _ in 0..<10 {
                    now += pause
                    for _ in 0..<FlowWindow.beginning {
                        window.take(512)
                        now += 20_000
                        if window.beginBarrier(at: now) {
                            now += 5000
                            window.barrierPassed(at: now)
                        }
                    }
                }
            }
            #expect(window.capacity == FlowWindow.beginning)
        }

        /// A pause between two bursts does not count as time that the link took.
        @Test func aPauseChangesNothing() {
            let radio = Radio(rate: 1200, answer: 25_000)
            var sender = Sender(window: FlowWindow(maximum: 1024))
            sender.run(5, over: radio)
            for _ in 0..<10 {
                sender.now += 2_000_000
                sender.cycle(over: radio)
                #expect(sender.window.capacity == 1024)
            }
        }

        @Test(arguments: [1, 2, 3, 31, 32, 33, 64, 65, 1024])
        func keepsItsBounds(_ maximum: Int) {
            var random = SplitMix64(seed: UInt64(maximum))
            var sender = Sender(window: FlowWindow(maximum: maximum))
            for _ in 0..<2000 {
                let rate = 1 + Int(random.next() % 5000)
                sender.cycle(over: Radio(rate: rate, answer: random.next() % 3_000_000))
                #expect(sender.window.capacity <= maximum)
                #expect(sender.window.capacity >= min(FlowWindow.minimum, maximum))
            }
            // Answers at once, and a clock that stands or goes backwards.
            for now: UInt64 in [0, .max, 0, 0, 0, 0, 0, 0] {
                while sender.window.hasSpace {
                    sender.window.take(512)
                    _ = sender.window.beginBarrier(at: now)
                }
                sender.window.barrierPassed(at: now)
                #expect((min(FlowWindow.minimum, maximum)...maximum).contains(sender.window.capacity))
            }
        }

        /// A last barrier passes what it is behind, and no more.
        @Test func aBarrierPassesWhatIsBeforeIt() {
            var window = FlowWindow(maximum: 1024)
            for _ in 0..<5 { window.take(100) }
            let begun = [false, true, true].map { window.beginBarrier(at: 0, isLast: $0) }
            #expect(begun == [false, true, false], "the window is not full, and then one is under way")
            #expect(window.markedBytes == 500)
            for _ in 0..<3 { window.take(100) }
            window.barrierPassed(at: 1)
            #expect(window.inFlight == 3 && window.bytes == 300 && window.markedBytes == 0)
        }

        /// With a window of 1 nothing is sent before the one on its way has passed.
        @Test func oneAtATime() {
            var window = FlowWindow(maximum: 1)
            for now in 0..<1000 {
                #expect(window.hasSpace)
                window.take(512)
                let isDue = window.beginBarrier(at: UInt64(now))
                #expect(isDue && !window.hasSpace)
                window.barrierPassed(at: UInt64(now))
            }
        }

        /// A barrier that nobody began, and windows that make no sense.
        @Test func takesWhatDoesNotFit() {
            var window = FlowWindow(maximum: -5)
            window.barrierPassed(at: 1)
            #expect(window.capacity == 1 && window.hasSpace && window.inFlight == 0)
        }
    }
#endif
