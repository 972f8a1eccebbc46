import Ferry

// Advertisers, and who hears them.
extension VirtualControllers {
    /// Scanners hear advertisers, and initiators find them.
    package mutating func meet() {
        let advertisers = sides.indices.filter { sides[$0].isAdvertising }
        for side in sides.indices where sides[side].isScanning || sides[side].initiating != nil {
            for other in advertisers where other != side && sides[other].isAdvertising { meet(side, other) }
        }
    }

    /// A scanner or initiator has the chance to hear an advertiser once.
    private mutating func meet(_ side: Int, _ other: Int) {
        let peer = sides[other]
        let path = air.path(side, other)
        guard let signal = path.signal, path.loss == 0 || Int(random.next() % 100) >= path.loss else { return }
        // Nobody from before Bluetooth 5 hears it.
        guard !peer.isExtendedPacket || sides[side].options.isExtended else { return }
        let address = peer.options.isExtended && !peer.setAddress.isEmpty ? peer.setAddress : peer.random
        let (type, named) = name(of: address, on: side)
        let isListed = sides[side].list.contains([type & 1] + named) && !sides[side].options.ignoresList
        if sides[side].isScanning, !sides[side].isStalled, isListed || !sides[side].scansByList {
            let kind = peer.advertisingType
            let legacyType: UInt8 = kind == 0 ? 0x13 : kind == 2 ? 0x12 : 0x10
            let extendedType = peer.isExtendedPacket ? legacyType & 0x01 : legacyType
            var reports = pieces(of: peer.data, extendedType).map { (kind, $0.type, $0.data) }
            if kind != 3, !peer.isExtendedPacket { reports.append((4, extendedType | 0x08, peer.response)) }
            for (legacy, extended, data) in reports {
                if sides[side].options.isExtended {
                    event(
                        0x3E,
                        extendedReport(extended, [type] + named, data, signal), to: side)
                } else {
                    event(0x3E, legacyReport(legacy, [type] + named, data, signal), to: side)
                }
            }
        }
        let isAwaited =
            sides[side].initiatesByList
            ? sides[side].initiating != nil && isListed : sides[side].initiating == named
        if isAwaited, peer.advertisingType == 0, !isConnected(side, other), hasRoom(side), hasRoom(other),
            connect(side, to: other, calling: address)
        {
            sides[side].initiating = nil
            sides[other].isAdvertising = false
        }
    }

    /// Data that do not fit an event are told in pieces (Vol 4, Part E, 7.7.65.13).
    private func pieces(of data: [UInt8], _ type: UInt8) -> [(type: UInt8, data: [UInt8])] {
        guard data.count > 100 else { return [(type, data)] }
        return [(type | 0x20, Array(data[..<100])), (type, Array(data[100...]))]
    }

    private func legacyReport(_ type: UInt8, _ address: [UInt8], _ data: [UInt8], _ signal: Int8) -> [UInt8] {
        var report: [UInt8] = [0x02, 1, type]
        report += address
        report.append(UInt8(data.count))
        report += data
        report.append(UInt8(bitPattern: signal))
        return report
    }

    private func extendedReport(_ type: UInt8, _ address: [UInt8], _ data: [UInt8], _ signal: Int8) -> [UInt8] {
        var report: [UInt8] = [0x0D, 1, type, 0]
        report += address
        report += [1, 0, 0xFF, 127, UInt8(bitPattern: signal), 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(data.count)]
        return report + data
    }
}
