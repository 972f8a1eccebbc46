import Testing
import VirtualControllers

/// Controllers on one air, without hosts: commands and data go in by the octet, what comes out is looked at.
struct AirRig {
    var controllers: VirtualControllers

    init(_ count: Int, _ options: VirtualControllers.Options = .init()) {
        controllers = VirtualControllers(options, count: count)
        for side in 0..<count {
            command(0x0C01, [UInt8](repeating: 0xFF, count: 8), side)
            command(0x2001, [UInt8](repeating: 0xFF, count: 8), side)
            command(0x2005, Self.address(side), side)
        }
        for side in 0..<count { _ = events(side) }
    }

    /// A static random one.
    static func address(_ side: Int) -> [UInt8] { [UInt8(side), 0, 0, 0, 0, 0xC0] }

    mutating func command(_ opcode: UInt16, _ parameters: [UInt8], _ side: Int) {
        controllers.receive(
            [0x01, UInt8(opcode & 0xFF), UInt8(opcode >> 8), UInt8(parameters.count)] + parameters, from: side)
    }

    /// What a host has been sent since the last time, without the H4 indicator.
    mutating func packets(_ side: Int) -> [[UInt8]] {
        let packets = controllers.toHost[side]
        controllers.toHost[side] = []
        return packets
    }

    /// Its events but Command Complete and Command Status.
    mutating func events(_ side: Int) -> [[UInt8]] {
        packets(side).filter { $0[0] == 0x04 && $0[1] != 0x0E && $0[1] != 0x0F }.map { Array($0[1...]) }
    }

    /// The payloads of complete L2CAP frames; none here is cut.
    mutating func data(_ side: Int) -> [(handle: UInt16, bytes: [UInt8])] {
        packets(side).filter { $0[0] == 0x02 }.map { (UInt16($0[1]) | UInt16($0[2] & 0x0F) << 8, Array($0[9...])) }
    }

    mutating func advertise(_ side: Int) {
        command(0x2006, [UInt8](repeating: 0, count: 15), side)
        command(0x2008, [3, 2, 1, 6] + [UInt8](repeating: 0, count: 28), side)
        command(0x200A, [1], side)
    }

    mutating func scan(_ side: Int) { command(0x200C, [1, 0], side) }

    /// By intervals of 30 ms and a supervision timeout of 500 ms.
    mutating func initiate(_ side: Int, _ other: Int) {
        let parameters: [UInt8] =
            [96, 0, 96, 0, 0, 1] + Self.address(other) + [1, 24, 0, 24, 0, 0, 0, 50, 0, 0, 0, 0, 0]
        command(0x200D, parameters, side)
    }

    /// Connects, and returns the handle.
    mutating func connect(_ central: Int, _ peripheral: Int) throws -> UInt16 {
        advertise(peripheral)
        initiate(central, peripheral)
        let events = [events(central), events(peripheral)]
        let complete = try #require(events[0].last { $0[0] == 0x3E && $0[2] == 0x01 })
        #expect(events[1].last?[4...5] == complete[4...5])
        return UInt16(complete[4]) | UInt16(complete[5]) << 8
    }

    /// A frame with one byte of payload.
    mutating func send(_ byte: UInt8, _ handle: UInt16, _ side: Int) {
        controllers.receive([0x02, UInt8(handle & 0xFF), UInt8(handle >> 8), 5, 0, 1, 0, 4, 0, byte], from: side)
    }

    mutating func say(_ lines: String...) {
        for line in lines { #expect(controllers.obey(line) == ["ok"], "\(line)") }
    }

    mutating func advance(to milliseconds: Int64) { controllers.advance(to: milliseconds * 1_000_000) }
}
