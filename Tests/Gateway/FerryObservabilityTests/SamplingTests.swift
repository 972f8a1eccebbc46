#if Observability
    import FerryObservability
    import TestSupport
    import Testing

    /// Which records are traced, and where: beside numbers that a program in Python has computed from the documentation.
    @Suite(.tags(.records)) struct SamplingTests {
        @Test(arguments: [
            ("", "00-6c62272e07bb014262b821756295c58d-045b5b928698bf92-01"),
            ("a", "00-d228cb696f1a8caf78912b704e4a8964-bf985903298f5308-01"),
            (
                "00000000000000010000000000000002/3.0000000000000007/a%20b/12",
                "00-4d0081730017240550fad70e0f7e937a-1e38afcbddd4379b-01"
            ),
        ]) func traceparents(_ name: String, _ expected: String) {
            #expect(RecordSampling.traceparent(of: name) == expected)
        }

        @Test func oneInSoMany() {
            func taken(_ sampling: RecordSampling, _ count: Int) -> [Int] {
                (1...count).filter { sampling.takes("s/1/t/\($0)") }
            }
            #expect(taken(.oneIn(2), 10) == [1, 3, 6, 7, 9, 10])
            #expect(taken(.oneIn(10), 36) == [3, 7, 21, 22, 30, 35, 36])
            #expect(taken(.oneIn(100), 500) == [21, 36, 63, 83, 436, 494, 500])
            #expect(taken(.oneIn(1), 100).count == 100 && taken(.oneIn(0), 100).count == 100)
            #expect(taken(.none, 100).isEmpty)
        }
    }
#endif
