import TestSupport
import Testing
import VirtualControllers

@testable import BluetoothHost

/// Bytes that an independent host stack (Bumble 0.0.236) makes of the same content.
@Suite(.tags(.host)) struct GoldenTests {
    private static let peer = Address(0xC122_3344_5566, .random)

    @Test func commands() throws {
        for isExtended in [false, true] {
            var pair = HostPair(.init(isExtended: isExtended))
            _ = try pair.connect()
            pair.host(1) { $0.scan(true, at: $1) }
            let id = try pair.connection(1)
            #expect(
                pair.host(1) { $0.requestParameters(id, interval: 6...12, latency: 1, supervisionTimeout: 100, at: $1) }
            )
            pair.host(1) { $0.disconnect(id, at: $1) }
            pair.settle()
            #expect(pair.host(1) { $0.connect(to: Self.peer, at: $1) })
            pair.settle()
            let both: [String] = ["06040340001 3", "13200e400006000c000100640000000000"]
            let legacy: [String] = [
                "06200f300060000001000000000000000700", "0d20196000600000016655443322c1010c0018000000f40100000000",
                "0b200701600060000100",
            ]
            let extended: [String] = [
                "362019001300300000600000070100000000000000007f0100010000", "392006010100000000",
                "43201a0001016655443322c101600060000c0018000000f40100000000", "4120080100010160006000",
                "422006010000000000",
            ]
            let sent = pair.controllers.sides[0].packets + pair.controllers.sides[1].packets
            for golden in both + (isExtended ? extended : legacy) {
                #expect(sent.contains(hex(golden.filter { $0 != " " })), "\(golden)")
            }
        }
    }

    @Test func signalling() throws {
        let cases: [(SignallingCommand, String)] = [
            (.reject(reason: 2), "010702000200"),
            (.disconnectionRequest(destination: 0x41, source: 0x42), "0607040041004200"),
            (.disconnectionResponse(destination: 0x41, source: 0x42), "0707040041004200"),
            (.parameterUpdateRequest(minimum: 6, maximum: 12, latency: 1, timeout: 100), "1207080006000c0001006400"),
            (.parameterUpdateResponse(result: 1), "130702000100"),
            (
                .connectionRequest(psm: 0x80, source: 0x40, mtu: 2048, mps: 2002, credits: 16),
                "14070a00800040000008d2071000"
            ),
            (
                .connectionResponse(destination: 0x41, mtu: 512, mps: 128, credits: 3, result: 0),
                "15070a0041000002800003000000"
            ),
            (.flowControlCredit(channel: 0x41, credits: 9), "1607040041000900"),
            (
                .enhancedRequest(.init(psm: 0x80, mtu: 2048, mps: 2002, credits: 16, sources: [0x40, 0x41])),
                "17070c0080000008d207100040004100"
            ),
            (
                .enhancedResponse(mtu: 512, mps: 128, credits: 3, result: 4, destinations: [0x42, 0]),
                "18070c00000280000300040042000000"
            ),
            (.reconfigureRequest(mtu: 4096, mps: 2002, channels: [0x40, 0x41]), "190708000010d20740004100"),
            (.reconfigureResponse(result: 1), "1a0702000100"),
        ]
        for (command, golden) in cases {
            #expect(command.encode(identifier: 7) == hex(golden))
            let decoded = try SignallingCommand.decode(hex(golden))
            #expect(decoded.identifier == 7)
            #expect(decoded.1 == command)
        }
    }

    @Test func attributeRequests() throws {
        let cases: [(ATTRequest, String)] = [
            (.exchangeMTU(517), "020502"), (.findInformation(1...0xFFFF), "040100ffff"),
            (.findByTypeValue(1...0xFFFF, type: .primaryService, value: [0x0F, 0x18]), "060100ffff00280f18"),
            (.readByType(1...9, type: .characteristic), "08010009000328"), (.read(0x1234), "0a3412"),
            (.readBlob(0x1234, offset: 22), "0c34121600"),
            (.readByGroupType(1...0xFFFF, type: .primaryService), "100100ffff0028"),
            (.write(3, value: [1, 2]), "1203000102"), (.prepareWrite(3, offset: 18, value: [1, 2]), "16030012000102"),
            (.executeWrite(isCommit: true), "1801"),
        ]
        for (request, golden) in cases { #expect(try ATTRequest.decode(hex(golden)) == request) }
        #expect(ATTPDU.error(0x0A, handle: 0x1234, .invalidHandle) == hex("010a341201"))
        var client = ClientProcedure(.services(.init(short: 0x180F)), id: 1)
        #expect(client.nextRequest(mtu: 23) == hex("060100ffff00280f18"))
    }

    @Test func events() throws {
        guard case .connectionComplete(let legacy) = try HCIEvent(hex("3e130100400001016655443322c118000000f40100")),
            case .connectionComplete(let enhanced) = try HCIEvent(
                hex("3e1f0a00400000016655443322c100000000000000000000000018000000f40100")),
            case .disconnectionComplete(0, 0x40, 0x13) = try HCIEvent(hex("050400400013")),
            case .advertisingReports(let reports) = try HCIEvent(
                hex("3e19020200016655443322c103020106ce04016655443322c100cd")),
            case .advertisingReports(let extended) = try HCIEvent(
                hex("3e1d0d011b00016655443322c10100ff7fce00000000000000000003020106"))
        else {
            Issue.record("an event was taken for another")
            return
        }
        for event in [legacy, enhanced] {
            #expect(event.handle == 0x40)
            #expect(event.peer == Self.peer)
            #expect(event.parameters == ConnectionParameters(interval: 24, latency: 0, supervisionTimeout: 500))
        }
        #expect(!legacy.isCentral)
        #expect(enhanced.isCentral)
        #expect(reports.map(\.rssi) == [-50, -51])
        #expect(reports.map(\.isScanResponse) == [false, true])
        #expect(reports[0].isConnectable)
        #expect(reports[0].data == [2, 1, 6])
        #expect(extended.map(\.data) == [[2, 1, 6]])
        #expect(extended[0].isScanResponse)
        #expect(extended[0].address == Self.peer)
    }
}

func hex(_ text: String) -> [UInt8] {
    let digits = Array(text)
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
}
