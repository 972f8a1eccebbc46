import ArgumentParser
import Ferry
import FerrySequenced
import TestSupport
import Testing

@testable import FerryCommand

@Suite(.tags(.program)) struct TraceTests {
    @Test func linesBecomeChunks() throws {
        #expect(try Trace.chunk("> e0 01 FF1f", 1)?.1 == [0xE0, 0x01, 0xFF, 0x1F])
        #expect(try Trace.chunk("<e3", 2)?.0 == .second)
        #expect(try Trace.chunk("  ", 3) == nil)
        #expect(try Trace.chunk("# a remark", 4) == nil)
    }

    @Test(arguments: ["> e", "> xy", "> +1", "e0 01"])
    func otherLinesAreRefusedByNumber(line: String) {
        let error = #expect(throws: ValidationError.self) { try Trace.chunk(line, 17) }
        #expect(error?.message.contains("Line 17") == true)
    }
}
