import FerryBluetooth
import FerrySimulator
import TestSupport
import Testing

@Suite("Distrusted throughput figures", .tags(.simulator)) struct DistrustedFigureTests {
    /// Figures that are not to be met, with what is right in their place (see Documentation/Method.md).
    @Test("Distrusted figures are not what the model gives") func distrusted() throws {
        // 1.434 Mbps counts a 1-byte preamble on LE 2M, which has 2 bytes: 1.426 is right.
        let twoM = Traffic(sender: .peripheral, unit: .raw(251))
        let fast = try kbps(twoM, 251, link(phy: .le2M, dataLength: 251, isEncrypted: true), events: 2)
        #expect(abs(fast - 1_426) < 1)
        // 0.381 Mbps for 27-byte packets is a slip: 27 * 8 / 708 us is 0.305.
        let plain = Traffic(sender: .peripheral, unit: .raw(27))
        let slow = try kbps(plain, 27, link(isEncrypted: true), events: 2)
        #expect(abs(slow - 305) < 1)
    }
}

@Suite("Air time", .tags(.simulator)) struct AirTimeTests {
    /// Exchange times in microseconds, worked out by hand.
    @Test func exchanges() {
        #expect(PHY.le1M.exchangeTime(payload: 27, isEncrypted: false) == 676_000)
        #expect(PHY.le1M.exchangeTime(payload: 27, isEncrypted: true) == 708_000)
        #expect(PHY.le1M.exchangeTime(payload: 251, isEncrypted: false) == 2_468_000)
        #expect(PHY.le1M.exchangeTime(payload: 251, isEncrypted: true) == 2_500_000)
        #expect(PHY.le2M.exchangeTime(payload: 251, isEncrypted: false) == 1_392_000)
        #expect(PHY.le2M.exchangeTime(payload: 251, isEncrypted: true) == 1_408_000)
    }

    /// The longest packets, as the specification gives them (Core Specification 5.4, Vol 6, Part B, 4.5.10, table 4.3).
    @Test func longestPackets() {
        #expect(PHY.le1M.airTime(payload: 27, isEncrypted: true) == 328_000)
        #expect(PHY.le1M.airTime(payload: 251, isEncrypted: true) == 2_120_000)
        #expect(PHY.le2M.airTime(payload: 251, isEncrypted: true) == 1_064_000)
        #expect(PHY.codedS8.airTime(payload: 27, isEncrypted: true) == 2_704_000)
        #expect(PHY.codedS8.airTime(payload: 251, isEncrypted: true) == 17_040_000)
        #expect(PHY.codedS2.airTime(payload: 251, isEncrypted: true) == 4_542_000)
    }
}
