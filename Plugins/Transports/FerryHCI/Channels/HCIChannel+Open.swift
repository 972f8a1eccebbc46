#if HCI
    import FerryBluetooth
    import Foundation
    import NIOCore
    import NIOPosix

    extension HCIChannel {
        /// One for all channels: what an adapter does is short, and two ends in one process then do not wake each other.
        private static let loop = MultiThreadedEventLoopGroup.singleton.next()

        /// Opens the channel and passes its packets to the engine.
        func open(for engine: HCIEngine) async throws {
            let group = HCIChannel.loop
            let initialize: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
                channel.eventLoop.makeCompletedFuture {
                    if case .user = self { try channel.pipeline.syncOperations.addHandler(PacketWriter()) }
                    try channel.pipeline.syncOperations.addHandler(HCIStreamHandler(engine))
                }
            }
            let sockets = ClientBootstrap(group: group)
                .connectTimeout(.seconds(5))
                .channelInitializer(initialize)
            // A packet of the kernel's that does not fit what it is read into loses its end.
            let descriptors = NIOPipeBootstrap(group: group)
                .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 8192))
                .channelInitializer(initialize)
            switch self {
            case .tcp(let host, let port):
                _ =
                    try await sockets
                    // As an option of TCP's: as one of the socket's it is SO_DEBUG, which only root may set.
                    .channelOption(.tcpOption(.tcp_nodelay), value: 1).connect(host: host, port: port).get()
            case .unix(let path): _ = try await sockets.connect(unixDomainSocketPath: path).get()
            case .serial(let path, let speed):
                try await Self.take(try SerialLine.open(path, speed: speed), descriptors)
            case .user(let device): try await Self.take(try UserChannel.open(device), descriptors)
            }
        }

        /// Why a channel cannot be opened, without what NIO says of itself.
        static func words(for error: any Error) -> String {
            switch error {
            case let error as NIOConnectionError:
                error.connectionErrors.first.map { words(for: $0.error) } ?? error.dnsAError.map { _ in
                    "the host was not found"
                }
                    ?? "\(error)"
            case let error as IOError: String(cString: strerror(error.errnoCode))
            default: "\(error)"
            }
        }

        /// The copy that NIO would make of the descriptor is inherited by every process that this one starts, which then
        /// keeps the adapter from others; so it is made here.
        private static func take(_ descriptor: Int32, _ bootstrap: NIOPipeBootstrap) async throws {
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            do {
                guard copy >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
                _ = try await bootstrap.takingOwnershipOfDescriptors(input: descriptor, output: copy).get()
            } catch {
                close(descriptor)
                if copy >= 0 { close(copy) }
                throw error
            }
        }
    }
#endif
