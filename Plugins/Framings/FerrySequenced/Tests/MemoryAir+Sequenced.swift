import Ferry
import FerrySequenced
import TestSupport

extension MemoryAir {
    func sequenced(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
        try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming(), time: time)
    }
}
