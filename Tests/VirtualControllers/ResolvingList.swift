/// A peer whose private addresses a controller knows.
package struct ResolvingEntry: Sendable, Equatable {
    /// Type and address.
    package let identity: [UInt8]
    /// The peer's key, most significant octet first.
    package let key: [UInt8]
}

// Controllers that resolve private addresses (Core Specification 5.4, Vol 4, Part E, 7.8.38 to 7.8.44, and Vol 6, Part B, 6).
extension VirtualControllers {
    static let resolvingCommands: [(Int, Int)] = [(34, 3), (34, 5), (34, 6), (35, 1), (39, 2)]

    /// Whether a side advertises with the legacy commands, scans or connects: its addresses and keys must not change then.
    func isOnAir(_ side: Int) -> Bool {
        let isAdvertising = sides[side].isAdvertising && !sides[side].options.isExtended
        return isAdvertising || sides[side].isScanning || sides[side].initiating != nil
    }

    /// Carries out a command that is about resolution; false when it is another, or not known.
    mutating func resolvingCommand(_ opcode: UInt16, _ p: [UInt8], _ side: Int) -> Bool {
        guard sides[side].options.resolvingListSize > 0 else { return false }
        let isBusy = isOnAir(side) || sides[side].isAdvertising
        var status: UInt8 = 0
        switch opcode {
        case 0x202A:
            complete(opcode, [0, UInt8(sides[side].options.resolvingListSize)], to: side)
            return true
        case 0x202D where isBusy, 0x2027 where isBusy && sides[side].isResolving,
            0x2029 where isBusy && sides[side].isResolving, 0x204E where isBusy && sides[side].isResolving:
            faults.append("the resolving list changes while it is in use")
            status = 0x0C
        case 0x2027 where sides[side].resolvingList.count == sides[side].options.resolvingListSize: status = 0x07
        case 0x2027:
            sides[side].resolvingList.append(
                ResolvingEntry(identity: Array(p[..<7]), key: Array(p[7..<23].reversed())))
        case 0x2029: sides[side].resolvingList = []
        case 0x202D: sides[side].isResolving = p[0] == 1
        case 0x204E: status = sides[side].resolvingList.contains { $0.identity == Array(p[..<7]) } ? 0 : 0x02
        default: return false
        }
        complete(opcode, [status], to: side)
        return true
    }

    /// What a side calls a random address: type and address, of the identity where it resolves it.
    func name(of address: [UInt8], on side: Int) -> (type: UInt8, address: [UInt8]) {
        let value = address.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        guard sides[side].isResolving, value >> 46 == 1, let hash = sides[side].options.hash else {
            return (1, address)
        }
        let found = sides[side].resolvingList.first { hash($0.key, value >> 24) == value & 0xFF_FFFF }
        return found.map { ($0.identity[0] | 2, Array($0.identity[1...])) } ?? (1, address)
    }

    /// LE Connection Complete, or the enhanced form from those that resolve.
    mutating func connectionComplete(
        _ role: UInt8, with address: [UInt8], _ parameters: [UInt8], _ slot: Int, to side: Int
    ) {
        let (type, named) = name(of: address, on: side)
        let isEnhanced = sides[side].options.resolvingListSize > 0
        let handle = Self.handle(of: slot)
        var bytes: [UInt8] = [
            isEnhanced ? 0x0A : 0x01, 0, UInt8(handle & 0xFF), UInt8(handle >> 8), role, type,
        ]
        bytes += named
        if isEnhanced {
            bytes += [UInt8](repeating: 0, count: 6)
            bytes += type & 2 == 0 ? [UInt8](repeating: 0, count: 6) : address
        }
        event(0x3E, bytes + parameters + [0], to: side)
    }
}
