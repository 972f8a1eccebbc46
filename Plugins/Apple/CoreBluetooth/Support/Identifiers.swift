import FerryBluetooth
import Foundation

extension UUID {
    /// The UUID as one number, the first byte most significant.
    var bits: UInt128 {
        withUnsafeBytes(of: uuid) { $0.reduce(0) { $0 << 8 | UInt128($1) } }
    }

    init(bits: UInt128) {
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            withUnsafeBytes(of: bits.bigEndian) { bytes.copyMemory(from: $0) }
        }
        self.init(uuid: bytes)
    }

    init(_ peer: PeerID) { self.init(bits: peer.rawValue) }
}

extension PeerID {
    init(_ identifier: UUID) { self.init(rawValue: identifier.bits) }
}
