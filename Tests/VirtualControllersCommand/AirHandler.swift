#if HCI
    import Foundation
    import NIOCore
    import VirtualControllers

    /// A socket on which lines change the air, each answered by lines of which the last is "ok" or begins with "error:".
    final class AirHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let table: ControllerTable
        private var reader = LineReader()

        init(_ table: ControllerTable) { self.table = table }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var answer = ByteBuffer()
            for line in reader.read(unwrapInboundIn(data).readableBytesView) {
                for text in table.obey(line) { answer.writeString(text + "\n") }
            }
            context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
            // Who asks on and on and does not read gets no further.
            if !context.channel.isWritable { context.close(promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Lines on standard input, answered on standard output.
    ///
    /// A thread reads, for a readability handler can crash (libdispatch issue 949) and epoll knows no files.
    func obeyStandardInput(_ table: NIOLoopBound<ControllerTable>, on loop: any EventLoop) {
        Thread.detachNewThread {
            var reader = LineReader()
            var buffer = [UInt8](repeating: 0, count: 4096)
            while true {
                // FileHandle's read waits for as many bytes as it is asked for.
                let count = read(STDIN_FILENO, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                let lines = reader.read(buffer[..<count])
                // Waits, so that what has been read is bounded.
                let answers = try? loop.submit { lines.flatMap { table.value.obey($0) } }.wait()
                for answer in answers ?? [] { say(answer) }
            }
        }
    }
#endif
