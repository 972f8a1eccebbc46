import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

@Suite(.tags(.host)) struct RoleTests {
    @Test(arguments: [false, true])
    func scanHearsAnAdvertisement(isExtended: Bool) throws {
        var pair = HostPair(.init(isExtended: isExtended))
        pair.start()
        pair.host(1) { $0.scan(true, at: $1) }
        let payload = AdvertisingPayload(
            data: [2, 1, 6, 17, 7] + HostPair.service.bytes, scanResponse: [5, 9] + Array("card".utf8))
        #expect(pair.host(0) { $0.advertise(payload, at: $1) })
        pair.settle()
        var heard: [[UInt8]] = []
        var isConnectable = false
        for case .advertisementReceived(let report) in pair.log[1] {
            heard.append(report.data)
            isConnectable = isConnectable || report.isConnectable
            #expect(report.rssi == -50)
        }
        #expect(isConnectable)
        #expect(Set(heard) == [payload.data, payload.scanResponse])
    }

    @Test(arguments: [false, true])
    func advertisingGoesOnAfterAConnection(isExtended: Bool) throws {
        var pair = HostPair(.init(isExtended: isExtended))
        _ = try pair.connect()
        #expect(pair.controllers.sides[0].isAdvertising)
        #expect(pair.host(0) { $0.advertise(nil, at: $1) })
        pair.settle()
        #expect(!pair.controllers.sides[0].isAdvertising)
    }

    @Test func connectingCanBeCalledOff() {
        var pair = HostPair()
        pair.start()
        let away = Address.staticRandom(0xC0FFEE)
        #expect(pair.host(1) { $0.connect(to: away, at: $1) })
        #expect(!pair.host(1) { $0.connect(to: away, at: $1) })
        pair.settle()
        pair.host(1) { $0.cancelConnection(to: away, at: $1) }
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .connectionFailed(away, .unknownConnection) = $0 { true } else { false }
            })
    }

    @Test func aPeerThatIsAwayDoesNotKeepOthersWaiting() {
        var pair = HostPair(.init(listSize: 0))
        pair.start()
        let payload = AdvertisingPayload(data: [2, 1, 6])
        #expect(pair.host(0) { $0.advertise(payload, at: $1) })
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xC0FFEE), at: $1) })
        pair.settle()
        #expect(pair.host(1) { $0.connect(to: .staticRandom(0xF1F1_F1F1_F1F1), at: $1) })
        pair.settle()
        #expect(pair.peers(1).isEmpty)
        pair.advance(seconds: 5)
        #expect(pair.peers(1).count == 1)
    }

    @Test func disconnectingLetsWhatIsQueuedLeave() throws {
        var pair = HostPair(.init(completesAtOnce: false))
        let handles = try pairConnectManually(&pair)
        let central = try pair.connection(1)
        #expect(
            pair.host(1) { host, _ in
                host.writeCommand(([1, 2, 3] as [UInt8]).span.bytes, to: handles.characteristics[0], of: central)
            } == true)
        pair.host(1) { $0.disconnect(central, at: $1) }
        pair.settle()
        #expect(pair.peers(1).count == 1)
        pair.controllers.release(99, on: 1)
        pair.settle()
        #expect(pair.received[0] == [[1, 2, 3]])
        #expect(pair.peers(1).isEmpty)
        #expect(pair.peers(0).isEmpty)
    }

    /// Connects where packets are completed only by hand.
    private func pairConnectManually(_ pair: inout HostPair) throws -> ServiceHandles {
        let handles = try pair.connect()
        for _ in 0..<8 {
            for side in 0...1 { pair.controllers.release(99, on: side) }
            pair.settle()
        }
        return handles
    }

    @Test func rssiIsRead() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let id = try pair.connection(1)
        #expect(pair.host(1) { $0.readRSSI(id, at: $1) })
        pair.settle()
        #expect(pair.log[1].contains { if case .rssi(id, -50) = $0 { true } else { false } })
    }

    @Test func peripheralAsksForOtherParameters() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let id = try pair.connection(0)
        #expect(
            !pair.host(0) {
                $0.requestParameters(id, interval: 3200...3200, latency: 499, supervisionTimeout: 10, at: $1)
            })
        #expect(
            pair.host(0) { $0.requestParameters(id, interval: 6...12, latency: 0, supervisionTimeout: 100, at: $1) })
        pair.settle()
        let expected = ConnectionParameters(interval: 12, latency: 0, supervisionTimeout: 100)
        for side in 0...1 {
            #expect(pair.log[side].contains { if case .parametersChanged(_, expected) = $0 { true } else { false } })
        }
    }
}

@Suite(.tags(.host)) struct GATTTests {
    @Test(arguments: [(517, 517), (517, 23), (185, 517), (247, 247), (23, 23)], [27, 251])
    func mtuIsTheSmallerOne(mtus: (Int, Int), aclLength: Int) throws {
        var pair = HostPair(.init(aclLength: aclLength, receiveLength: aclLength), mtus: mtus)
        _ = try pair.connect()
        for side in 0...1 {
            let id = try pair.connection(side)
            #expect(pair.host(side) { host, _ in host.attMTU(of: id) } == min(mtus.0, mtus.1))
        }
        #expect(pair.controllers.faults.isEmpty)
    }

    @Test func discoveryFindsWhatWasPublished() throws {
        var pair = HostPair(mtus: (23, 23))
        let handles = try pair.connect()
        guard case .success(.services(let services)) = try pair.ask(.services(nil)) else {
            Issue.record("no services")
            return
        }
        #expect(services.map(\.uuid) == [.genericAccess, .genericAttribute, HostPair.service])
        #expect(services.last?.handles == handles.service...handles.end)
        #expect(
            try pair.ask(.services(HostPair.service))
                == .success(.services(services.suffix(1).map { $0 })))
        guard case .success(.characteristics(let found)) = try pair.ask(.characteristics(in: 1...0xFFFF)) else {
            Issue.record("no characteristics")
            return
        }
        #expect(
            found.map(\.uuid) == [
                .deviceName, .appearance, .serviceChanged, .clientSupportedFeatures, .databaseHash,
                HostPair.characteristic,
                HostPair.secret,
            ])
        #expect(found.suffix(2).map(\.value) == handles.characteristics)
        #expect(found.map(\.end).last == 0xFFFF)
        let descriptors = try pair.ask(.descriptors(in: handles.characteristics[0] + 1...found[5].end))
        #expect(
            descriptors
                == .success(
                    .descriptors([
                        DiscoveredDescriptor(handle: handles.characteristics[0] + 1, uuid: .clientConfiguration)
                    ])))
        #expect(try pair.ask(.services(BluetoothHost.UUID(short: 0x1234))) == .success(.services([])))
        #expect(try pair.ask(.readByType(1...0xFFFF, .deviceName)) == .success(.value(Array("Ferry".utf8))))
    }

    @Test func includedServicesAreFoundWithTheirTypes() throws {
        var pair = HostPair(mtus: (23, 23))
        let handles = try pair.connect()
        let outer = try #require(
            pair.host(0) {
                $0.addService(
                    ServiceSpecification(.init(short: 0x1815), includes: [handles.service, 1], characteristics: []),
                    at: $1)
            })
        guard case .success(.services(let included)) = try pair.ask(.includedServices(in: outer.service...outer.end))
        else {
            Issue.record("none included")
            return
        }
        #expect(included.map(\.uuid) == [HostPair.service, .genericAccess])
        #expect(included.map(\.handles.lowerBound) == [handles.service, 1])
    }

    @Test(arguments: [0, 1, 21, 22, 23, 44, 45, 511, 512])
    func longValuesAreReadWhole(count: Int) throws {
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        var pair = HostPair(mtus: (23, 23))
        let handles = try pair.connect(value: value)
        #expect(try pair.ask(.read(handles.characteristics[0])) == .success(.value(value)))
    }

    @Test(arguments: [23, 185, 517], [20, 512])
    func writesReachTheApplicationWhole(mtu: Int, count: Int) throws {
        var pair = HostPair(mtus: (mtu, mtu))
        let handles = try pair.connect()
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let id = try pair.connection(1)
        let operation = try #require(
            pair.host(1) { $0.request(.write(handles.characteristics[0], value), of: id, at: $1) })
        pair.settle()
        var written = [UInt8](repeating: 0, count: 0)
        for case .writeRequest(let request, _, let parts) in pair.log[0] {
            for part in parts {
                #expect(part.offset == written.count)
                written += part.value
            }
            pair.host(0) { $0.respond(to: request, with: .success([]), at: $1) }
        }
        pair.settle()
        #expect(written == value)
        #expect(try pair.result(of: operation) == .success(.done))
    }

    @Test func applicationErrorsReachTheClient() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.request(.read(handles.characteristics[0]), of: id, at: $1) })
        pair.settle()
        for case .readRequest(let request, _, _, 0) in pair.log[0] {
            pair.host(0) { $0.respond(to: request, with: .failure(ATTErrorCode(rawValue: 0x80)), at: $1) }
        }
        pair.settle()
        #expect(try pair.result(of: operation) == .failure(.refused(ATTErrorCode(rawValue: 0x80))))
        #expect(try pair.ask(.read(0x7777)) == .failure(.refused(.invalidHandle)))
        #expect(try pair.ask(.write(1, [0])) == .failure(.refused(.writeNotPermitted)))
    }

    @Test(arguments: [false, true])
    func anUnansweredRequestEndsTheConnectionAfter30Seconds(echoesReason: Bool) throws {
        var pair = HostPair(.init(echoesReason: echoesReason))
        let handles = try pair.connect()
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.request(.read(handles.characteristics[0]), of: id, at: $1) })
        pair.settle()
        pair.advance(seconds: 29)
        #expect(pair.peers(1) == [id])
        pair.advance(seconds: 2)
        #expect(pair.peers(1).isEmpty)
        #expect(try pair.result(of: operation) == .failure(.disconnected(.terminatedByLocalHost)))
    }

    @Test func preparedWritesAreBounded() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        let pdu = ATTPDU.make(ATTOpcode.prepareWriteRequest, handles.characteristics[0], 0, value: [1])
        var frame: [UInt8] = []
        frame.append(u16: UInt16(pdu.count))
        frame.append(u16: ChannelID.att)
        for _ in 0..<500 {
            pair.controllers.sendFrame(frame + pdu, to: 0)
            pair.settle()
        }
        let refused = pair.controllers.frames[0].filter {
            $0[4...] == [0x01, 0x16, UInt8(handles.characteristics[0]), 0, 0x09]
        }
        #expect(refused.count == 500 - LEHost.preparedLimit)
    }
}

@Suite(.tags(.host)) struct ValueTests {
    private func subscribe(_ pair: inout HostPair, _ handles: ServiceHandles, _ bits: UInt16) throws {
        #expect(
            try pair.ask(.configure(value: handles.characteristics[0], end: handles.end, bits: bits)) == .success(.done)
        )
    }

    @Test(arguments: [27, 251], [20, 244, 514])
    func notificationsArriveInOrder(aclLength: Int, count: Int) throws {
        var pair = HostPair(.init(aclLength: aclLength, receiveLength: aclLength))
        let handles = try pair.connect()
        try subscribe(&pair, handles, 1)
        var sent: [[UInt8]] = []
        for number in 0..<100 {
            let value = [UInt8](repeating: UInt8(number), count: count)
            while !pair.host(0, { $0.updateValue(value.span.bytes, of: handles.characteristics[0], at: $1) }) {
                pair.settle()
            }
            sent.append(Array(value.prefix(512)))
        }
        pair.settle()
        #expect(pair.received[1] == sent)
        #expect(pair.controllers.faults.isEmpty)
    }

    @Test func backpressureIsTheControllers() throws {
        var pair = HostPair(maximumQueuedBytes: 1024)
        let handles = try pair.connect()
        try subscribe(&pair, handles, 1)
        pair.controllers.sides[0].options.completesAtOnce = false
        let value = [UInt8](repeating: 7, count: 100)
        var accepted = 0
        while pair.host(0, { $0.updateValue(value.span.bytes, of: handles.characteristics[0], at: $1) }) {
            accepted += 1
            pair.settle()
            #expect(accepted < 100)
            if accepted >= 100 { return }
        }
        // Four packets of 27 are with the controller, 1024 bytes and no more wait.
        #expect(accepted == (1024 + 4 * 27) / 107)
        let before = pair.log[0].count
        pair.settle()
        #expect(pair.log[0].count == before)
        while !pair.controllers.sides[0].waiting.isEmpty {
            pair.controllers.release(1, on: 0)
            pair.settle()
        }
        #expect(pair.log[0][before...].filter { if case .readyToSend = $0 { true } else { false } }.count == 1)
        #expect(pair.received[1].count == accepted)
        #expect(pair.controllers.faults.isEmpty)
    }

    @Test func indicationsTakeTurnsWithTheirConfirmations() throws {
        var pair = HostPair(.init(completesAtOnce: true))
        let handles = try pair.connect()
        try subscribe(&pair, handles, 2)
        #expect(pair.host(0) { $0.updateValue(([1] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        #expect(!pair.host(0) { $0.updateValue(([2] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        pair.settle()
        #expect(pair.log[0].contains { if case .readyToSend = $0 { true } else { false } })
        #expect(pair.host(0) { $0.updateValue(([2] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        pair.settle()
        #expect(pair.received[1] == [[1], [2]])
    }

    @Test func whoIsNotSubscribedIsPassedOver() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        #expect(pair.host(0) { $0.updateValue(([1] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        try subscribe(&pair, handles, 1)
        try subscribe(&pair, handles, 0)
        #expect(pair.host(0) { $0.updateValue(([2] as [UInt8]).span.bytes, of: handles.characteristics[0], at: $1) })
        pair.settle()
        #expect(pair.received[1].isEmpty)
        let bits = pair.log[0].compactMap { if case .configurationChanged(_, _, let bits) = $0 { bits } else { nil } }
        #expect(bits == [1, 0])
    }

    @Test func clientsLearnThatServicesChanged() throws {
        var pair = HostPair()
        let handles = try pair.connect()
        _ = try pair.ask(.services(nil))
        pair.host(0) { $0.removeService(handles.service, at: $1) }
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .servicesChanged(_, handles.service...handles.end) = $0 { true } else { false }
            })
        #expect(pair.received[1].isEmpty)
    }

    @Test func writeCommandsArriveAndAreRefusedWhenTheQueueIsFull() throws {
        var pair = HostPair(maximumQueuedBytes: 1024)
        let handles = try pair.connect()
        let id = try pair.connection(1)
        var count = 0
        while pair.host(
            1, { host, _ in host.writeCommand([UInt8(count)].span.bytes, to: handles.characteristics[0], of: id) })
            == true
        {
            count += 1
        }
        #expect(count == 1024 / 8)
        pair.settle()
        #expect(pair.received[0].map { $0[0] } == (0..<count).map { UInt8($0) })
        #expect(pair.log[1].contains { if case .readyToSend(id) = $0 { true } else { false } })
        let long = [UInt8](repeating: 0, count: 515)
        #expect(
            pair.host(1) { host, _ in host.writeCommand(long.span.bytes, to: handles.characteristics[0], of: id) }
                == nil)
    }
}

@Suite(.tags(.host)) struct ChannelTests {
    @Test(arguments: [1, 21, 22, 2000, 2048])
    func sdusArriveBothWays(count: Int) throws {
        var pair = HostPair()
        let (outgoing, incoming) = try open(&pair)
        var expected: [[UInt8]] = []
        for number in 0..<60 {
            let sdu = [UInt8](repeating: UInt8(number), count: count)
            expected.append(sdu)
            while pair.host(1, { host, _ in host.trySend(sdu.span.bytes, on: outgoing) }) == false { pair.settle() }
            while pair.host(0, { host, _ in host.trySend(sdu.span.bytes, on: incoming) }) == false { pair.settle() }
        }
        pair.settle()
        #expect(pair.received == [expected, expected])
        #expect(
            pair.host(1) { host, _ in host.trySend([UInt8](repeating: 0, count: 2049).span.bytes, on: outgoing) } == nil
        )
        pair.host(0) { $0.closeChannel(incoming, at: $1) }
        pair.settle()
        for (side, id) in [(0, incoming), (1, outgoing)] {
            #expect(pair.log[side].contains { if case .channelClosed(id) = $0 { true } else { false } })
        }
        #expect(pair.controllers.faults.isEmpty)
    }

    @Test func aReceiverThatPausesStopsTheSender() throws {
        var pair = HostPair()
        let (outgoing, incoming) = try open(&pair)
        pair.host(0) { $0.setReceiving(false, on: incoming, at: $1) }
        var accepted = 0
        let sdu = [UInt8](repeating: 1, count: 1000)
        while pair.host(1, { host, _ in host.trySend(sdu.span.bytes, on: outgoing) }) == true {
            accepted += 1
            pair.settle()
            if accepted > 300 {
                Issue.record("never refused")
                return
            }
        }
        #expect(pair.received[0].count == Int(CreditChannel.credits))
        pair.host(0) { $0.setReceiving(true, on: incoming, at: $1) }
        pair.settle()
        #expect(pair.received[0].count == accepted)
        #expect(pair.log[1].contains { if case .channelReady(outgoing) = $0 { true } else { false } })
    }

    @Test func unknownNumbersAreRefused() throws {
        var pair = HostPair()
        _ = try pair.connect()
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.openChannel(id, psm: 0x99, at: $1) })
        pair.settle()
        #expect(
            pair.log[1].contains {
                if case .channelRefused(operation, id, .psmNotSupported) = $0 { true } else { false }
            })
    }

    private func open(_ pair: inout HostPair) throws -> (CreditChannelID, CreditChannelID) {
        _ = try pair.connect()
        #expect(pair.host(0) { host, _ in host.listen(psm: 0x80) })
        let id = try pair.connection(1)
        let operation = try #require(pair.host(1) { $0.openChannel(id, psm: 0x80, at: $1) })
        pair.settle()
        var opened: [CreditChannelID] = []
        for case .channelOpened(let channel, _, 0x80, operation) in pair.log[1] { opened.append(channel) }
        for case .channelOpened(let channel, _, 0x80, nil) in pair.log[0] { opened.append(channel) }
        #expect(opened.count == 2)
        return (try #require(opened.first), try #require(opened.last))
    }
}
