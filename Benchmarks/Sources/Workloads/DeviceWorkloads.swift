import Ferry
import FerryBTP
import FerryMdoc
import FerryPFTP
import FerrySMP
import FerryUART

/// The decoders of formats of devices, each with the stream of 16 messages of 16 KiB in its format.
public func deviceDecoders(_ chunkSize: Int) throws -> [Workload] {
    let (lines, slip, cobs) = (UARTFraming(.lines(.lineFeed)), UARTFraming(.slip), UARTFraming(.cobs))
    return [
        .decode("decode mdoc", MdocFraming(), try bigStream(MdocFraming(), chunkSize)),
        .decode("decode pftp", PFTPFraming(), try bigStream(PFTPFraming(), chunkSize)),
        .decode("decode smp", SMPFraming(), try bigStream(SMPFraming(), chunkSize, .smp)),
        .decode("decode lines of text", lines, try bigStream(lines, chunkSize, .text)),
        .decode("decode slip of text", slip, try bigStream(slip, chunkSize, .text)),
        .decode("decode slip of bytes", slip, try bigStream(slip, chunkSize)),
        .decode("decode cobs of text", cobs, try bigStream(cobs, chunkSize, .text)),
        .decode("decode cobs of bytes", cobs, try bigStream(cobs, chunkSize)),
    ]
}

/// Both ends of BTP, acknowledgements included, with the same messages.
public func btpExchange(_ chunkSize: Int) throws -> Workload {
    try Workload.exchange("btp", BTPFraming(), messageSize: 16 << 10, messageCount: 16, chunkSize: chunkSize).workload
}

extension Workload {
    static func decode(_ name: String, _ framing: MdocFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    static func decode(_ name: String, _ framing: PFTPFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    static func decode(_ name: String, _ framing: SMPFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    static func decode(_ name: String, _ framing: UARTFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }
}
