import ArgumentParser
import Ferry
import FerryLab

/// `ferry advise`: recommends how to send messages of given sizes to a given peer.
struct Advise: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Recommends chunk, framing, compression and interval for your messages, and says why.",
        discussion: """
            Every choice is simulated with real channels over a model of the link layer. Give message sizes with \
            --message-size (2000, or 60:70,2000:30 for sizes with weights), --sizes-file (one size on each line) or \
            --sample (files that are messages, which also shows what compression gains). With --records codecs are compared \
            too: the bytes of a record by each of them, plain, compressed, and compressed with a dictionary, and how many a second \
            cross the link that is advised. Protocol Buffers are judged by the fields that a developer would declare.
            """)

    @Flag(
        name: .long,
        help: "Print every published figure that the simulator is scored against, and how far it is off; nothing else.")
    var score = false

    @Option(name: .long, help: ArgumentHelp("Message sizes in bytes, with weights if you like.", valueName: "sizes"))
    var messageSize: String?

    @Option(name: .long, help: ArgumentHelp("A file with one message size on each line.", valueName: "file"))
    var sizesFile: String?

    @Option(name: .long, parsing: .upToNextOption, help: ArgumentHelp("Files that are messages.", valueName: "file"))
    var sample: [String] = []

    @OptionGroup var codecs: CodecOptions

    @Option(
        name: .long,
        help: "The other device: ios, android, bluez, custom (--controller and --profile-file go with it only).")
    var peer = "custom"

    @OptionGroup var controller: ControllerOptions

    @Option(name: .long, help: "ATT_MTU that the peer agrees to, if you know it.")
    var mtu: Int?

    @Option(name: .long, help: "Connection intervals in ms to choose from.")
    var interval: CommaList<Double>?

    @Option(name: .long, help: "PHY: 1M, 2M, coded-S2, coded-S8.")
    var phy = "1M"

    @Option(name: .long, help: "Link-layer data length in bytes, 27 to 251.")
    var dataLength = 251

    @Option(name: .long, help: "Probability that a packet is damaged, 0 to 1.")
    var errorRate = 0.0

    @Option(name: .long, help: "Who sends: notify (the peripheral), write (the central).")
    var direction = "notify"

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Latency to stay within, for 99 % of the messages of each size. Ends with 1 where no interval does.",
            valueName: "ms"))
    var within: Double?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Simulated time for each choice: less is quicker and less exact. (default: 20, and 10 for --records)",
            valueName: "seconds"))
    var seconds: Double?

    @Option(name: .long, help: "Seed of damage and pauses.")
    var seed: UInt64 = 1

    @Flag(name: .long, help: "Print JSON.")
    var json = false

    func validate() throws {
        let given = [messageSize != nil, sizesFile != nil, !sample.isEmpty, codecs.records != nil].count { $0 }
        if score {
            guard given == 0, peer == "custom", controller.given == nil, mtu == nil, interval == nil, within == nil
            else {
                throw ValidationError("--score prints figures, and advises nothing. Leave all options but --json out.")
            }
            return
        }
        guard given == 1 else {
            throw ValidationError(
                "Give the message sizes with one of --message-size, --sizes-file, --sample and --records.")
        }
        do { _ = try adviser(try codecs.set()) } catch { throw CommandEnd.usage(error) }
    }

    func run() async throws {
        do {
            if score {
                let score = try Score()
                return print(json ? try JSONFile.text(score) : score.text(), terminator: "")
            }
            let set = try codecs.set()
            let adviser = try adviser(set)
            var advice = try adviser.advise()
            if let set {
                var comparison = try codecs.comparison(of: set)
                try comparison.measure(on: adviser.settings(of: advice))
                advice.codecs = comparison
            }
            print(json ? try JSONFile.text(advice) : advice.text(), terminator: "")
            if advice.isWithin == false { throw ExitCode.failure }
        } catch let error as FerryError {
            throw CommandFailure(error.message)
        }
    }

    private func adviser(_ records: RecordSet?) throws(FerryError) -> Adviser {
        var device = try Peer(named: peer, controller: controller.settings())
        // A named peer brings its own controller: another one would be left unused.
        if peer != "custom", let given = controller.given {
            throw FerryError(
                .invalidConfiguration,
                "\(given) does not go with --peer \(peer), which names a controller already. Leave one of them out.")
        }
        if let mtu { device.attMTU = mtu }
        if let interval { try device.choose(from: interval.elements) }
        guard let way = DirectionChoice(rawValue: direction) else {
            throw FerryError(.invalidConfiguration, "The direction '\(direction)' is not known: notify, write.")
        }
        if let within, !(within > 0) {
            throw FerryError(.invalidConfiguration, "A latency of \(within) ms cannot be kept; give more than 0.")
        }
        var base = BenchSettings(
            attMTU: device.attMTU, interval: 30, phy: phy, dataLength: dataLength, isEncrypted: true, framing: .length,
            compression: .none, messageSize: 1, queueDepth: 8, direction: way, centrals: 1, packetErrorRate: errorRate,
            profile: device.profile, seconds: seconds ?? 10, seed: seed)
        guard !device.intervals.isEmpty else {
            throw FerryError(.invalidConfiguration, "The sweep is empty: --interval names no value. Give at least one.")
        }
        for interval in device.intervals {
            base.interval = interval
            try base.validate()
        }
        var adviser = Adviser(sizes: try sizes(records), peer: device, base: base, deadline: within)
        adviser.seconds = seconds ?? adviser.seconds
        return adviser
    }

    private func sizes(_ records: RecordSet?) throws(FerryError) -> MessageSizes {
        if let records { return try MessageSizes(messages: try codecs.messages(of: records)) }
        if let messageSize { return try MessageSizes(distribution: messageSize) }
        if let sizesFile { return try MessageSizes(sizesIn: sizesFile) }
        let sizes = try MessageSizes(samples: sample)
        guard sizes.quantile(1) > 0 else {
            throw FerryError(.unreadableFile, "The samples are empty, which shows nothing of a message.")
        }
        return sizes
    }
}
