#if NATS && Records
    import Ferry
    import Foundation
    import NIOCore
    import NIOHTTP1
    import NIOPosix
    import Synchronization

    /// What a gateway answers over HTTP, to `GET` and `HEAD`: its figures for Prometheus, and whether it lives and is ready.
    ///
    /// Clients are served side by side, at most ``maximumConnections``. One that says or takes nothing for 5 s is let go, and each after 30 s.
    final class GatewayEndpoint: Sendable {
        /// What there is.
        enum Page: String, CaseIterable, Sendable {
            case metrics = "/metrics"
            case health = "/healthz"
            case readiness = "/readyz"
        }

        /// The answer at a path.
        struct Answer: Sendable, Hashable {
            /// Whether all is well: status 200, and 503 otherwise.
            let isGood: Bool
            let text: String

            init(isGood: Bool = true, text: String) { (self.isGood, self.text) = (isGood, text) }
        }

        static let maximumConnections = 64
        static let patience = TimeAmount.seconds(5)
        static let longestConnection = TimeAmount.seconds(30)

        private let channel: any Channel
        /// The port that it listens on.
        let port: Int

        /// Listens.
        ///
        /// - Parameters:
        ///   - address: `HOST:PORT` with a numeric address, such as `127.0.0.1:9469` or `[::1]:9469`; port 0 for any that is free.
        ///   - answer: gives the answer, on a thread that must not be blocked.
        /// - Throws: `invalidConfiguration` for a text that is no address, or one that cannot be listened on.
        init(_ address: String, _ answer: @escaping @Sendable (Page) -> Answer) async throws(FerryError) {
            let place = try Self.parse(address)
            let places = Places()
            let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelInitializer { channel in
                    guard places.take() else { return channel.close() }
                    channel.closeFuture.whenComplete { _ in places.giveBack() }
                    return channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(IdleStateHandler(allTimeout: Self.patience))
                        try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                        try pipeline.addHandler(Answering(answer))
                    }
                }
            do { channel = try await bootstrap.bind(to: place).get() } catch {
                throw FerryError(
                    .invalidConfiguration,
                    "Metrics cannot be served at \(address): \(Self.reason(error)). Choose another port.")
            }
            port = channel.localAddress?.port ?? 0
        }

        /// Listens no longer. Clients that are being answered have their time.
        func end() { channel.close(promise: nil) }

        static func parse(_ address: String) throws(FerryError) -> SocketAddress {
            if let colon = address.lastIndex(of: ":"), let port = UInt16(address[address.index(after: colon)...]) {
                var host = address[..<colon]
                if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
                if let place = try? SocketAddress(ipAddress: String(host), port: Int(port)) { return place }
            }
            throw FerryError(
                .invalidConfiguration,
                "\(address.debugDescription) is no place for metrics: give a numeric address and a port, such as 127.0.0.1:9469."
            )
        }

        private static func reason(_ error: any Error) -> String {
            guard let error = error as? IOError else { return "\(error)" }
            return String(cString: strerror(error.errnoCode))
        }

        /// How many may be connected.
        private final class Places: Sendable {
            private let taken = Atomic(0)

            func take() -> Bool {
                guard taken.add(1, ordering: .relaxed).newValue > GatewayEndpoint.maximumConnections else {
                    return true
                }
                giveBack()
                return false
            }

            func giveBack() { taken.subtract(1, ordering: .relaxed) }
        }

        /// One client.
        private final class Answering: ChannelInboundHandler {
            typealias InboundIn = HTTPServerRequestPart
            typealias OutboundOut = HTTPServerResponsePart

            private let answer: @Sendable (Page) -> Answer
            private var request: HTTPRequestHead?
            private var limit: Scheduled<Void>?

            init(_ answer: @escaping @Sendable (Page) -> Answer) { self.answer = answer }

            func channelActive(context: ChannelHandlerContext) {
                limit = context.eventLoop.scheduleTask(in: GatewayEndpoint.longestConnection) {
                    [channel = context.channel] in channel.close(promise: nil)
                }
                context.fireChannelActive()
            }

            func channelInactive(context: ChannelHandlerContext) {
                limit?.cancel()
                context.fireChannelInactive()
            }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                switch unwrapInboundIn(data) {
                case .head(let head): request = head
                case .body: break
                case .end:
                    guard let request else { return }
                    self.request = nil
                    reply(to: request, context)
                }
            }

            private func reply(to request: HTTPRequestHead, _ context: ChannelHandlerContext) {
                let (status, headers, text) = Self.reply(to: request.method, request.uri, answer)
                context.write(
                    wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))),
                    promise: nil)
                if request.method != .HEAD {
                    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
                }
                let channel = context.channel
                context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
            }

            private static func reply(
                to method: HTTPMethod, _ uri: String, _ answer: (Page) -> Answer
            ) -> (HTTPResponseStatus, HTTPHeaders, String) {
                var headers = HTTPHeaders([("Connection", "close"), ("Cache-Control", "no-store")])
                var (status, type, text) = (HTTPResponseStatus.notFound, "text/plain; charset=utf-8", "")
                if let page = Page(rawValue: String(uri.prefix { $0 != "?" })) {
                    if method == .GET || method == .HEAD {
                        let answer = answer(page)
                        (status, text) = (answer.isGood ? .ok : .serviceUnavailable, answer.text)
                        // Prometheus' text format says its version.
                        if page == .metrics { type = "text/plain; version=0.0.4; charset=utf-8" }
                    } else {
                        (status, text) = (.methodNotAllowed, "Only GET and HEAD are answered.\n")
                        headers.add(name: "Allow", value: "GET, HEAD")
                    }
                } else {
                    text = "There is \(Page.allCases.map(\.rawValue).joined(separator: ", ")).\n"
                }
                headers.add(name: "Content-Type", value: type)
                headers.add(name: "Content-Length", value: "\(text.utf8.count)")
                return (status, headers, text)
            }

            func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
                if event is IdleStateHandler.IdleStateEvent {
                    context.close(promise: nil)
                } else {
                    context.fireUserInboundEventTriggered(event)
                }
            }

            func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
        }
    }
#endif
