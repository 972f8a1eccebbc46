import ArgumentParser
import Foundation
import VirtualControllers

#if HCI
    import NIOCore
    import NIOPosix
#endif

/// Prints a line at once, also into a file.
func say(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }

/// LE controllers for as many hosts, without a radio.
@main struct VirtualControllersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "virtual-controllers",
        abstract: "Bluetooth LE controllers for as many hosts, without a radio.",
        discussion: """
            Each serves H4 to one host at a time, and can have connections with any of the others, whose data pass as fast \
            as the hosts take them. They are strict: they know only the commands they say they know, and complain of a host \
            that overruns their buffers, in lines that begin with !!.

            With --control lines say how they hear one another while they are at work. A and B are controllers: a number \
            from 0 on, two with - between, or * for all. Each line is answered; the last line of an answer is ok, or begins \
            with error: and says what is wrong.

            \(AirCommand.help)

            What is set for a pair holds both ways. Who is out of reach is not heard and cannot be connected to; a connection \
            out of reach ends on both sides after its supervision timeout, unless the two come back before. By place, the \
            signal is -50 dBm at 1 m and falls by 25 dB when the distance grows tenfold; below -95 dBm it is out of reach.
            """)

    @Argument(help: "Where each is found: tcp:HOST:PORT or unix:PATH.")
    var places: [String]

    @Option(help: "So many controllers at one place: from the port on, or at PATH0, PATH1 and so on. 2 to 1000.")
    var count: Int?

    @Option(help: "Where lines that change the air come from: tcp:HOST:PORT, unix:PATH, or - for standard input.")
    var control: String?

    @Option(help: "Connections of each controller, 1 to 255.")
    var connections = 32

    @Option(help: "Bytes of a data buffer, 27 to 251.")
    var aclLength = 251

    @Option(help: "Data buffers of each controller, 1 to 255.")
    var aclCount = 8

    @Flag(help: "Extended advertising and scanning in place of the legacy commands.")
    var extended = false

    func validate() throws {
        if count == nil {
            guard (2...1000).contains(places.count) else {
                throw ValidationError("Name two places or more, one for each controller, or one place and --count.")
            }
        } else {
            _ = try expandedPlaces()
        }
        guard (1...255).contains(connections) else { throw ValidationError("A controller has 1 to 255 connections.") }
        guard (27...251).contains(aclLength) else { throw ValidationError("A buffer has 27 to 251 bytes.") }
        guard (1...255).contains(aclCount) else { throw ValidationError("A controller has 1 to 255 buffers.") }
    }

    /// One place for each controller.
    private func expandedPlaces() throws -> [String] {
        guard let count else { return places }
        guard (2...1000).contains(count) else { throw ValidationError("--count is 2 to 1000.") }
        guard let place = places.first, places.count == 1 else {
            throw ValidationError("--count goes with one place, and \(places.count) are named.")
        }
        if place.hasPrefix("unix:") { return (0..<count).map { "\(place)\($0)" } }
        guard let colon = place.lastIndex(of: ":"), let port = Int(place[place.index(after: colon)...]),
            (1...65536 - count).contains(port)
        else { throw ValidationError("\(place) has no port, or too few after it. Use tcp:HOST:PORT or unix:PATH.") }
        return (0..<count).map { "\(place[...colon])\(port + $0)" }
    }

    func run() async throws {
        #if HCI
            var options = VirtualControllers.Options(
                isExtended: extended, aclLength: aclLength, aclCount: aclCount, receiveLength: 251,
                completesAtOnce: false, isRecording: false)
            options.connectionCount = connections
            let places = try expandedPlaces()
            let group = MultiThreadedEventLoopGroup.singleton
            let loop = group.next()
            let table = try await loop.submit { [options] in
                NIOLoopBound(ControllerTable(options, count: places.count, on: loop), eventLoop: loop)
            }.get()
            var servers: [any Channel] = []
            if let control {
                if control == "-" {
                    obeyStandardInput(table, on: loop)
                } else {
                    servers.append(
                        try await Self.bind(
                            ServerBootstrap(group: loop).serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                                .childChannelInitializer { channel in
                                    channel.eventLoop.makeCompletedFuture {
                                        try channel.pipeline.syncOperations.addHandler(AirHandler(table.value))
                                    }
                                }, control))
                    say("The air is changed at \(control).")
                }
            }
            for (side, place) in places.enumerated() {
                let bootstrap = ServerBootstrap(group: loop)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .childChannelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            if place.hasPrefix("tcp:") {
                                try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
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
