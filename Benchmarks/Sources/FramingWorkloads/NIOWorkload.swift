import NIOCore
import NIOEmbedded
import NIOExtras

extension Workload {
    /// swift-nio-extras' `LengthFieldBasedFrameDecoder` with a length of 4 bytes, fed chunk by chunk.
    ///
    /// It can only run inside a channel handler. Of the ways to feed one, the cheapest is taken: the chunks are slices,
    /// made beforehand, of one buffer; they enter at the pipeline's head without `EmbeddedChannel`'s own queues; and the
    /// handler behind takes the frame as the slice that the decoder made, not as bytes of its own.
    public static func nioDecode(_ name: String, _ stream: ChunkStream) -> Workload {
        Workload(name, chunksPerPass: stream.chunkCount, bytesPerPass: stream.payloadBytes) { passes in
            let channel = EmbeddedChannel()
            let counter = FrameCounter()
            let decoder = LengthFieldBasedFrameDecoder(lengthFieldBitLength: .fourBytes)
            try channel.pipeline.syncOperations.addHandlers([ByteToMessageHandler(decoder), counter])
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
                for chunk in chunks { channel.pipeline.syncOperations.fireChannelRead(NIOAny(chunk)) }
                return counter.bytes
            }
        }
    }
}

private final class FrameCounter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    var bytes = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { bytes += unwrapInboundIn(data).readableBytes }
}
