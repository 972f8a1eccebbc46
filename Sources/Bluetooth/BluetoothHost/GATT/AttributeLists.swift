// Lists of attributes, as clients ask for them (Core Specification 5.4, Vol 3, Part F, 3.4.3 and 3.4.4).

extension AttributeDatabase {
    /// Find Information (Vol 3, Part F, 3.4.3.1): handles and types of one length.
    func findInformation(_ range: ClosedRange<UInt16>, mtu: Int) throws(ATTRequest.Refusal) -> [UInt8] {
        var entries: [UInt8] = []
        var length = 0
        for attribute in attributes(in: range) {
            let type = attribute.type.bytes
            if entries.isEmpty { length = type.count }
            guard type.count == length, 2 + entries.count + 2 + length <= mtu else { break }
            entries.append(u16: attribute.handle)
            entries += type
        }
        guard !entries.isEmpty else {
            throw ATTRequest.Refusal(handle: range.lowerBound, code: .attributeNotFound)
        }
        return [ATTOpcode.findInformationResponse, length == 2 ? 1 : 2] + entries
    }

    /// Find By Type Value (3.4.3.3): the ranges of services of one type. What the client may not read it may not guess either.
    func findByTypeValue(
        _ range: ClosedRange<UInt16>, _ type: UUID, _ value: [UInt8], mtu: Int, isReadable: (Attribute) -> Bool
    ) throws(ATTRequest.Refusal) -> [UInt8] {
        // A 16-bit UUID may be given in its long form.
        let uuid = UUID(bytes: value)
        var entries: [UInt8] = []
        for attribute in attributes(in: range) where attribute.type == type && isReadable(attribute) {
            guard case .fixed(let own) = attribute.content, own == value || (uuid != nil && UUID(bytes: own) == uuid)
            else {
                continue
            }
            guard 1 + entries.count + 4 <= mtu else { break }
            entries.append(u16: attribute.handle)
            entries.append(u16: isService(attribute) ? attribute.group : attribute.handle)
        }
        guard !entries.isEmpty else {
            throw ATTRequest.Refusal(handle: range.lowerBound, code: .attributeNotFound)
        }
        return [ATTOpcode.findByTypeValueResponse] + entries
    }

    /// Read By Group Type (3.4.4.9): services with their ranges.
    func readByGroupType(
        _ range: ClosedRange<UInt16>, _ type: UUID, mtu: Int
    ) throws(ATTRequest.Refusal) -> [UInt8] {
        guard type == .primaryService || type == .secondaryService else {
            throw ATTRequest.Refusal(handle: range.lowerBound, code: .unsupportedGroupType)
        }
        var entries: [UInt8] = []
        var length = 0
        for attribute in attributes(in: range) where attribute.type == type {
            guard case .fixed(let value) = attribute.content else { continue }
            if entries.isEmpty { length = value.count }
            guard value.count == length, 2 + entries.count + 4 + length <= mtu else { break }
            entries.append(u16: attribute.handle)
            entries.append(u16: attribute.group)
            entries += value
        }
        guard !entries.isEmpty else {
            throw ATTRequest.Refusal(handle: range.lowerBound, code: .attributeNotFound)
        }
        return [ATTOpcode.readByGroupTypeResponse, UInt8(length + 4)] + entries
    }
}
