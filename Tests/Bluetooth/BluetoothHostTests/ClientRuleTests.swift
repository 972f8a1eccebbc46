import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Servers that answer what was not asked, too much, or too slowly (Core Specification 5.4, Vol 3, Part F, 3).
@Suite(.tags(.host)) struct ClientRuleTests {
    private static let server = Address.staticRandom(0xE6E6_E6E6_E6E6)

    /// - Parameter mtu: what the server agrees to; nil for one that refuses to exchange it.
    private func connected(mtu: UInt16? = nil) throws -> (Attack, ConnectionID) {
        let attack = Attack()
        try attack.start(as: Self.server)
        try attack.beConnected(as: Self.server)
        if let mtu {
            #expect(attack.frames(on: 4).first?.first == ATTOpcode.exchangeMTURequest)
            attack.send([0x03, UInt8(mtu & 0xFF), UInt8(mtu >> 8)], on: 4)
        }
        attack.refuseRequests()
        return (attack, try attack.connection())
    }

    /// Asks, and returns the PDU that the server is sent.
    private func ask(_ attack: Attack, _ id: ConnectionID, _ request: ClientRequest) throws -> (OperationID, [UInt8]) {
        let operation = try #require(attack.host { $0.request(request, of: id, at: $1) })
        attack.settle()
        return (operation, try #require(attack.frames(on: 4).last))
    }

    private func result(_ attack: Attack, _ operation: OperationID) -> Result<ClientResult, ClientFailure>? {
        for case .completed(operation, _, let result) in attack.log { return result }
        return nil
    }

    // MARK: Errors

    private static let discoveries: [(ClientRequest, Result<ClientResult, ClientFailure>)] = [
        (.services(nil), .success(.services([]))), (.services(.genericAttribute), .success(.services([]))),
        (.includedServices(in: 1...9), .success(.services([]))),
        (.characteristics(in: 1...9), .success(.characteristics([]))),
        (.descriptors(in: 1...9), .success(.descriptors([]))),
        (.configure(value: 3, end: 9, bits: 1), .failure(.noConfiguration)),
        (.read(3), .failure(.refused(.attributeNotFound))),
        (.readByType(1...9, .databaseHash), .failure(.refused(.attributeNotFound))),
        (.write(3, [1]), .failure(.refused(.attributeNotFound))),
    ]

    /// "Attribute Not Found" for another request is not the end of this one's list.
    @Test(arguments: discoveries.indices)
    func anErrorCountsForTheRequestThatItNames(place: Int) throws {
        let (attack, id) = try connected()
        let (request, expected) = Self.discoveries[place]
        for opcode in [UInt8(0x00), 0x02, 0x01, 0x16, 0xFF] {
            let (operation, _) = try ask(attack, id, request)
            attack.send([0x01, opcode, 1, 0, 0x0A], on: 4)
            #expect(result(attack, operation) == .failure(.malformedResponse))
        }
        let (operation, pdu) = try ask(attack, id, request)
        attack.send([0x01, pdu[0], 1, 0, 0x0A], on: 4)
        #expect(result(attack, operation) == expected)
    }

    /// What was found before a wrong error is not all there is.
    @Test func aWrongErrorInTheMiddleOfAListIsNoEnd() throws {
        let (attack, id) = try connected()
        let (operation, _) = try ask(attack, id, .services(nil))
        attack.send([0x11, 6, 1, 0, 9, 0, 0x0F, 0x18], on: 4)
        attack.send([0x01, ATTOpcode.readRequest, 10, 0, 0x0A], on: 4)
        #expect(result(attack, operation) == .failure(.malformedResponse))
    }

    /// The parts that the server has taken of a write do not wait in its queue for the next.
    @Test(arguments: [[0x01, 0x0A, 3, 0, 0x0A], [0x0B, 1], [0x17]] as [[UInt8]])
    func aLongWriteThatIsAnsweredWronglyIsCancelled(answer: [UInt8]) throws {
        let (attack, id) = try connected()
        let (operation, pdu) = try ask(attack, id, .write(3, [UInt8](repeating: 7, count: 100)))
        #expect(pdu[0] == ATTOpcode.prepareWriteRequest)
        attack.send(answer, on: 4)
        #expect(attack.frames(on: 4) == [[ATTOpcode.executeWriteRequest, 0]])
        attack.send([0x19], on: 4)
        #expect(result(attack, operation) == .failure(.malformedResponse))
    }

    // MARK: Lengths

    /// Answers that are longer than what they say.
    @Test(arguments: [[0x13, 0], [0x01, 0x12, 3, 0, 0x0A, 0], [0x01, 0x12, 3, 0]] as [[UInt8]])
    func anAnswerOfAnotherLengthIsNone(answer: [UInt8]) throws {
        let (attack, id) = try connected()
        let (operation, pdu) = try ask(attack, id, .write(3, [1]))
        #expect(pdu[0] == 0x12)
        attack.send(answer, on: 4)
        #expect(result(attack, operation) == .failure(.malformedResponse))
    }

    @Test(arguments: [UInt16(23), 100])
    func aPDUOfTheWholeMTUIsTaken(mtu: UInt16) throws {
        let (attack, _) = try connected(mtu: mtu)
        let bytes = [UInt8](repeating: 0x66, count: Int(mtu) - 3)
        attack.send([0x1B, 3, 0] + bytes, on: 4)
        attack.send([0x1D, 3, 0] + bytes, on: 4)
        attack.send([0x23, 3, 0, UInt8(mtu - 5), 0] + bytes.dropLast(2), on: 4)
        #expect(attack.received == [bytes, bytes, Array(bytes.dropLast(2))])
        #expect(attack.isConnected)
    }

    /// Notification, indication, several values, answer to a read, write command and request.
    @Test(
        arguments: [[0x1B, 3, 0], [0x1D, 3, 0], [0x23, 3, 0, 19, 0], [0x0B], [0x52, 3, 0], [0x12, 3, 0]] as [[UInt8]])
    func aPDUBeyondTheMTUEndsTheConnection(header: [UInt8]) throws {
        let (attack, id) = try connected()
        let (operation, _) = try ask(attack, id, .read(3))
        attack.send(header + [UInt8](repeating: 0x66, count: 24 - header.count), on: 4)
        #expect(attack.received.isEmpty)
        #expect(!attack.isConnected)
        #expect(attack.hasDiagnostic("it sends an ATT PDU of 24 bytes, and ATT_MTU is 23"))
        #expect(result(attack, operation) == .failure(.disconnected(.terminatedByLocalHost)))
    }

    /// 517 bytes hold more than a value may have (Part F, 3.2.9); a part of it is not the value.
    @Test(arguments: [512, 513, 516]) func aValueHasAtMost512Bytes(count: Int) throws {
        let (attack, id) = try connected(mtu: 517)
        let (operation, _) = try ask(attack, id, .read(3))
        let value = [UInt8](repeating: 7, count: count)
        let length = UInt16(count + 1)
        attack.controllers.sendFrame([UInt8(length & 0xFF), UInt8(length >> 8), 4, 0, 0x0B] + value, to: 0)
        attack.settle()
        #expect(result(attack, operation) == (count == 512 ? .success(.value(value)) : .failure(.malformedResponse)))
    }

    // MARK: Time

    /// One characteristic at a time, each well within the 30 s that an answer may take.
    @Test func aDiscoveryEndsAsAWhole() throws {
        let (attack, id) = try connected()
        let (operation, _) = try ask(attack, id, .characteristics(in: 1...0xFFFF))
        var answers: UInt8 = 0
        while attack.isConnected, answers < 100 {
            attack.advance(seconds: 20)
            let handle = 2 * answers + 1
            attack.send([0x09, 7, handle, 0, 0x02, handle + 1, 0, 0x19, 0x2A], on: 4)
            answers += 1
        }
        #expect(answers == 15)
        #expect(attack.hasDiagnostic("it did not come to the end of what it was asked within 300 s"))
        #expect(result(attack, operation) == .failure(.disconnected(.terminatedByLocalHost)))
    }

    /// Nor do many requests of a client's that take a while each, one after another.
    @Test func eachRequestHasItsOwnTime() throws {
        let (attack, id) = try connected()
        for _ in 0..<30 {
            let (operation, pdu) = try ask(attack, id, .read(3))
            attack.advance(seconds: 20)
            attack.send([0x01, pdu[0], 3, 0, 0x0A], on: 4)
            #expect(result(attack, operation) == .failure(.refused(.attributeNotFound)))
        }
        #expect(attack.isConnected)
    }
}
