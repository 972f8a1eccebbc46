import NIOCore
import NIOEmbedded
import NIOExtras
public import Workloads

extension Workload {
    /// swift-nio-extras' `LengthFieldBasedFrameDecoder` with a length of 4 bytes, fed chunk by chunk as a link would.
    ///
    /// It runs inside a channel handler only. A link lends its bytes for the time of a call, so each chunk is copied into
    /// a `ByteBuffer` of its own, as NIO's sockets read into one, and is an event of its own, a read and its end. The
    /// events enter at the pipeline's head without `EmbeddedChannel`'s own queues. The handler behind takes each frame as
    /// the slice that the decoder made, not as bytes of its own, which would cost more.
    public static func nioDecode(_ name: String, _ stream: ChunkStream) -> Workload {
        Workload(name, stream) { passes in
            let (channel, counter) = try makeNIOChannel()
            let pipeline = channel.pipeline.syncOperations
            defer { _ = try? channel.finish() }
            return measure(passes) {
                counter.bytes = 0
                stream.bytes.withUnsafeBytes { bytes in
                    var start = 0
                    for end in stream.ends {
                        var chunk = channel.allocator.buffer(capacity: end - start)
                        chunk.writeBytes(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                        pipeline.fireChannelRead(NIOAny(chunk))
                        pipeline.fireChannelReadComplete()
                        start = end
                    }
                }
                return counter.bytes
            }
        }
    }

    /// The decoder alone, as fast as it can be made to go: the chunks are slices of one buffer, made beforehand, and
    /// reads never end. No link can deliver like this.
    public static func nioDecodeOfSlices(_ name: String, _ stream: ChunkStream) -> Workload {
        Workload(name, stream) { passes in
            let (channel, counter) = try makeNIOChannel()
            let pipeline = channel.pipeline.syncOperations
            defer { _ = try? channel.finish() }
            let whole = ByteBuffer(bytes: stream.bytes)
            var start = 0
            var chunks: [ByteBuffer] = []
            for end in stream.ends {
                guard let chunk = whole.getSlice(at: start, length: end - start) else { break }
                chunks.append(chunk)
                start = end
            }
            return measure(passes) {
                counter.bytes = 0
                for chunk in chunks { pipeline.fireChannelRead(NIOAny(chunk)) }
                return counter.bytes
            }
        }
    }

    private static func makeNIOChannel() throws -> (EmbeddedChannel, FrameCounter) {
        let channel = EmbeddedChannel()
        let counter = FrameCounter()
        let decoder = LengthFieldBasedFrameDecoder(lengthFieldBitLength: .fourBytes)
        try channel.pipeline.syncOperations.addHandlers([ByteToMessageHandler(decoder), counter])
        return (channel, counter)
    }
}

private final class FrameCounter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    var bytes = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { bytes += unwrapInboundIn(data).readableBytes }
}
