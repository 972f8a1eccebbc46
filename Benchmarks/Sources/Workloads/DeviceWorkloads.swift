import Ferry
import FerryBTP
import FerryMdoc
import FerryPFTP
import FerryUART

/// The decoders of formats of devices, each with the stream of 16 messages of 16 KiB in its format.
public func deviceDecoders(_ chunkSize: Int) throws -> [Workload] {
    [
        .decode("decode mdoc", MdocFraming(), try bigStream(MdocFraming(), chunkSize)),
        .decode("decode pftp", PFTPFraming(), try bigStream(PFTPFraming(), chunkSize)),
        .decode("decode slip", UARTFraming(.slip), try bigStream(UARTFraming(.slip), chunkSize)),
        .decode("decode cobs", UARTFraming(.cobs), try bigStream(UARTFraming(.cobs), chunkSize)),
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

    static func decode(_ name: String, _ framing: UARTFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }
}
