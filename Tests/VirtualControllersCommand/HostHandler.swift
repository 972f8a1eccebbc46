#if HCI
    import NIOCore

    /// One host's socket.
    final class HostHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let table: ControllerTable
        private let side: Int
        private var isServed = false
        private var held = ByteBuffer()

        init(_ table: ControllerTable, _ side: Int) {
            self.table = table
            self.side = side
        }

        func channelActive(context: ChannelHandlerContext) {
            isServed = table.open(context.channel, on: side)
            if !isServed {
                say("Controller \(side) has a host already.")
                context.close(promise: nil)
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard isServed else { return }
            var buffer = unwrapInboundIn(data)
            if held.readableBytes > 0 {
                held.writeBuffer(&buffer)
                swap(&held, &buffer)
                held = ByteBuffer()
            }
            let isInStep = table.receive(&buffer, from: side)
            held = buffer.readableBytes > 0 ? buffer : ByteBuffer()
            if !isInStep {
                say("!! The host of controller \(side) sends something that is no command and no data.")
                context.close(promise: nil)
            }
        }

        func channelInactive(context: ChannelHandlerContext) {
            guard isServed else { return }
            table.close(side)
            say("Controller \(side): host gone.")
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
#endif
