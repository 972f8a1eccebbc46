package import Ferry
import FerryBTP
import FerryBitchat
package import FerryBluetooth
import FerryGattlink
import FerryMdoc
import FerryMeshtastic
import FerryPFTP
import FerrySMP
package import FerrySequenced
import FerryUART

/// The framings that can be compared.
package enum FramingChoice: String, Codable, CaseIterable, Sendable {
    /// The payload's length, then the payload.
    case length
    /// Chunks as large as the link takes, then the marker `EOM`.
    case eom
    /// The same with chunks of 20 bytes, as the classic sample has them.
    case classicEOM = "eom-20"
    /// Numbered chunks, acknowledged and sent again when lost.
    case sequenced
    /// Those of devices that carry messages of any bytes: mobile documents, Matter's BTP, Polar's PFTP, SLIP and COBS.
    case mdoc, btp, pftp, slip, cobs
    /// Those of devices whose messages have a form: lines without an end in them, requests of MCUmgr, IPv4 datagrams by Gattlink, packets of
    /// bitchat, and Meshtastic's values.
    case lines, smp, gattlink, bitchat, meshtastic

    /// How the framing lies over GATT: Ferry's in `own`, mdoc in `own`'s service, those of other devices in theirs.
    package func layout(in own: GATTConfiguration) -> GATTConfiguration {
        switch self {
        case .length, .eom, .classicEOM, .sequenced: own
        case .mdoc: .mdocPeripheralServer(service: own.service)
        case .btp: .matterBTP
        case .pftp: .polarPFTP
        case .slip, .cobs, .lines: .nordicUART
        case .smp: .smp
        case .gattlink: .gattlink
        case .bitchat: .bitchat
        case .meshtastic: .meshtastic
        }
    }

    /// Whether a message may be any bytes: only then it can be compressed, or carry what two sides of a measurement tell each other.
    package var takesAnyBytes: Bool {
        switch self {
        case .length, .eom, .classicEOM, .sequenced, .mdoc, .btp, .pftp, .slip, .cobs: true
        case .lines, .smp, .gattlink, .bitchat, .meshtastic: false
        }
    }

    /// A channel over a link, whose messages have the form of ``message(count:seed:)``.
    ///
    /// - Parameter sequenced: the sequenced framing, where it is that one.
    package func channel(
        over link: any Link, sequenced: SequencedFraming = SequencedFraming(), compression: (any Compression)? = nil,
        chunkSize: Int? = nil, time: any TimeSource = SystemTime()
    ) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
        func open(_ framing: some Framing) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(
                over: link, codec: BytesCodec(), framing: framing, compression: compression, chunkSize: chunkSize,
                time: time)
        }
        return switch self {
        case .length: try open(LengthPrefixFraming())
        case .eom: try open(try EndOfMessageFraming(chunkSize: nil))
        case .classicEOM: try open(EndOfMessageFraming())
        case .sequenced: try open(sequenced)
        case .mdoc: try open(MdocFraming())
        case .btp: try open(BTPFraming())
        case .pftp: try open(PFTPFraming())
        case .slip: try open(UARTFraming(.slip))
        case .cobs: try open(UARTFraming(.cobs))
        case .lines: try open(UARTFraming(.lines(.lineFeed)))
        case .smp: try open(SMPFraming())
        case .gattlink: try open(GattlinkFraming())
        case .bitchat: try open(Self.repeatableBitchat)
        case .meshtastic: try open(MeshtasticFraming())
        }
    }

    /// Without a draw, so that a run can be repeated, and with packets as large as can be.
    private static let repeatableBitchat: BitchatFraming = {
        var configuration = BitchatFraming.Configuration()
        configuration.seed = 0
        configuration.maximumFragments = BitchatFraming.mostFragments
        return BitchatFraming(configuration)
    }()
}

// MARK: - Messages

extension FramingChoice {
    /// A message of `count` bytes in all, of the form that the framing carries: text, behind a header where it has one.
    ///
    /// - Throws: what the format throws for a size that `BenchSettings.validate` refuses.
    package func message(count: Int, seed: UInt64) throws(FerryError) -> [UInt8] {
        func text(behind header: Int) -> [UInt8] { SampleText.bytes(count: count - header, seed: seed) }
        switch self {
        case .smp:
            // As the upload of an image.
            let header = SMPHeader(operation: .write, group: .image, sequence: 0, command: 1)
            return header.message(text(behind: SMPHeader.byteCount))
        case .gattlink:
            // An IPv4 head without options, RFC 791, 3.1: version and length, service, total length; the rest is not read.
            let head = [0x45, 0, UInt8(count >> 8), UInt8(count & 0xFF)] + [UInt8](repeating: 0, count: 16)
            return head + text(behind: head.count)
        case .bitchat:
            let header = BitchatPacket.smallestSize
            return try BitchatPacket(type: 2, sender: 1, timestamp: 0, payload: text(behind: header)).bytes()
        case .length, .eom, .classicEOM, .sequenced, .mdoc, .btp, .pftp, .slip, .cobs, .lines, .meshtastic:
            return text(behind: 0)
        }
    }

    /// Which sizes of messages the framing takes in chunks of `chunkSize` bytes, and what says so.
    private func sizes(chunkSize: Int) -> (range: ClosedRange<Int>, source: String)? {
        switch self {
        case .length, .eom, .classicEOM, .sequenced, .mdoc, .pftp, .cobs, .lines: nil
        case .slip: (1...16 << 20, "SLIP has no empty message")
        case .btp: (0...BTPFraming.maximumMessageSize, "BTPFraming.maximumMessageSize")
        case .smp: (SMPHeader.byteCount...SMPHeader.byteCount + SMPHeader.maximumPayload, "SMPHeader.maximumPayload")
        case .gattlink: (GattlinkFraming.shortestDatagram...Int(UInt16.max), "RFC 791, 3.1")
        case .bitchat:
            (
                BitchatPacket.smallestSize...BitchatPacket.smallestSize + Int(UInt16.max),
                "a packet of bitchat's version 1"
            )
        case .meshtastic: (1...max(1, chunkSize), "a message is one value; raise --mtu for larger ones")
        }
    }

    /// - Throws: `invalidConfiguration` for settings that the framing cannot be measured at.
    func check(_ settings: BenchSettings) throws(FerryError) {
        let chunkSize = min(settings.chunkSize ?? 512, settings.attMTU - 3)
        if let (range, source) = sizes(chunkSize: chunkSize) {
            try BenchSettings.check(settings.messageSize, range, "message size", source)
        }
        if settings.compression != .none, !takesAnyBytes {
            throw FerryError(
                .invalidConfiguration,
                "Messages by \(rawValue) have a form of their own, so that they cannot be compressed. Give --compression none."
            )
        }
        let smallest = self == .smp ? SMPFraming.minimumChunkSize : self == .bitchat ? BitchatFraming.smallestValue : 1
        guard chunkSize >= smallest else {
            throw FerryError(
                .invalidConfiguration,
                "\(rawValue) needs chunks of \(smallest) bytes; ATT_MTU \(settings.attMTU) leaves \(chunkSize). Give a larger --mtu."
            )
        }
    }
}
