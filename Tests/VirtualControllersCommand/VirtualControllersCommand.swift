import ArgumentParser
import Foundation

#if HCI
    import NIOCore
    import NIOPosix
    import VirtualControllers
#endif

/// Prints a line at once, also into a file.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

/// Two LE controllers for two hosts, without a radio.
@main struct VirtualControllersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "virtual-controllers",
        abstract: "Two Bluetooth LE controllers for two hosts, without a radio.",
        discussion: """
            Each serves H4 to one host at a time. They have one connection between them, whose data pass as fast as the \
            hosts take them. They are strict: they know only the commands they say they know, and complain of a host that \
            overruns their buffers, in lines that begin with !!.
            """)

    @Argument(help: "Where each is found: tcp:HOST:PORT or unix:PATH.")
    var places: [String]

    @Option(help: "Bytes of a data buffer, 27 to 251.")
    var aclLength = 251

    @Option(help: "Data buffers of each controller, 1 to 255.")
    var aclCount = 8

    @Flag(help: "Extended advertising and scanning in place of the legacy commands.")
    var extended = false

    func validate() throws {
        guard places.count == 2 else { throw ValidationError("Name two places, one for each controller.") }
        guard (27...251).contains(aclLength) else { throw ValidationError("A buffer has 27 to 251 bytes.") }
        guard (1...255).contains(aclCount) else { throw ValidationError("A controller has 1 to 255 buffers.") }
    }

    func run() async throws {
        #if HCI
            let options = VirtualControllers.Options(
                isExtended: extended, aclLength: aclLength, aclCount: aclCount, receiveLength: 251,
                completesAtOnce: false, isRecording: false)
            let group = MultiThreadedEventLoopGroup.singleton
            let loop = group.next()
            let table = try await loop.submit { NIOLoopBound(ControllerTable(options), eventLoop: loop) }.get()
            var servers: [any Channel] = []
            for (side, place) in places.enumerated() {
                let bootstrap = ServerBootstrap(group: loop)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            if place.hasPrefix("tcp:") {
                                try channel.syncOptions?.setOption(.socketOption(.tcp_nodelay), value: 1)
                            }
                            try channel.pipeline.syncOperations.addHandler(HostHandler(table.value, side))
                        }
                    }
                servers.append(try await Self.bind(bootstrap, place))
                say("Controller \(side) serves \(place).")
            }
            loop.scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) { _ in
                table.value.advertise()
            }
            for server in servers { try await server.closeFuture.get() }
        #else
            throw ValidationError("This build has no sockets: swift run --traits HCI virtual-controllers ...")
        #endif
    }

    #if HCI
        private static func bind(_ bootstrap: ServerBootstrap, _ place: String) async throws -> any Channel {
            if place.hasPrefix("unix:") {
                return try await bootstrap.bind(
                    unixDomainSocketPath: String(place.dropFirst(5)), cleanupExistingSocketFile: true
                ).get()
            }
            guard place.hasPrefix("tcp:"), let colon = place.lastIndex(of: ":"),
                let port = Int(place[place.index(after: colon)...]), (1...65535).contains(port),
                colon > place.index(place.startIndex, offsetBy: 4)
            else { throw ValidationError("\(place) names no place. Use tcp:HOST:PORT or unix:PATH.") }
            let host = String(place[place.index(place.startIndex, offsetBy: 4)..<colon])
            return try await bootstrap.bind(host: host, port: port).get()
        }
    #endif
}
