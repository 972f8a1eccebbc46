import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CoreBluetooth

/// The small parts that managers are made of.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct SupportTests {
    private final class Thing: Sendable {}

    @Test func aWeakTableHasOneObjectForEachKeyWhileItLives() {
        let table = WeakTable<Int, Thing>()
        var first: Thing? = table.object(1) { Thing() }
        #expect(table.object(1) { Thing() } === first)
        let second = table.object(2) { Thing() }
        #expect(second !== first)
        #expect(table.all.count == 2)
        first = nil
        #expect(table.all.count == 1)
        let again = table.object(1) { Thing() }
        #expect(again !== second)
        #expect(table.all.count == 2)
        // However many come and go, those that are kept stay.
        let kept = (10..<80).map { number in table.object(number) { Thing() } }
        for number in 100..<1_000 { _ = table.object(number) { Thing() } }
        #expect(table.all.count == 72)
        for (place, thing) in kept.enumerated() { #expect(table.object(10 + place) { Thing() } === thing) }
        #expect(table.object(2) { Thing() } === second)
    }

    @Test func tasksFollowOneAnotherInTheirOrder() async throws {
        let tasks = SerialTasks()
        let journal = Journal()
        let running = Mutex(0)
        for number in 0..<50 {
            tasks.add {
                #expect(
                    running.withLock {
                        $0 += 1; return $0
                    } == 1)
                if number % 7 == 0 { await Task.yield() }
                journal.add("\(number)")
                running.withLock { $0 -= 1 }
                if number == 49 { tasks.add { journal.add("last") } }
            }
        }
        try await journal.wait(for: "last")
        #expect(journal.all == (0..<50).map(String.init) + ["last"])
        // When all is done it begins again.
        tasks.add { journal.add("once more") }
        try await journal.wait(for: "once more")
    }

    @Test func identifiersKeepEveryBit() throws {
        let uuid = try #require(UUID(uuidString: "01234567-89AB-CDEF-0123-456789ABCDEF"))
        #expect(uuid.bits == 0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF)
        #expect(UUID(bits: uuid.bits) == uuid)
        #expect(UUID(bits: 1).uuidString == "00000000-0000-0000-0000-000000000001")
    }
}
