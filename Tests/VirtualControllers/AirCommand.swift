/// A line by which the air is changed while it is at work.
package enum AirCommand: Sendable, Equatable {
    case signal(ClosedRange<Int>, ClosedRange<Int>, Int8?)
    case automatic(ClosedRange<Int>, ClosedRange<Int>)
    case loss(ClosedRange<Int>, ClosedRange<Int>, Int)
    case place(ClosedRange<Int>, Air.Place)
    /// Packets each way in a connection event; nil as many as there are, at once.
    case pace(Int?)
    case show(Int, Int)
    case connections

    /// What a line says wrong, where, and what to write.
    package struct Failure: Error, Equatable { package let reason: String }

    /// The lines that there are.
    package static let help = """
        signal A B DBM     from now on A and B hear one another with DBM, -127 to 20
        signal A B out     A and B are out of reach of one another
        signal A B auto    their signal follows from where they stand (unless told where: -50)
        loss A B PERCENT   so many advertisements and connection events between them are lost, 0 to 100
        place A X Y        A stands there, in metres, -1000000 to 1000000
        pace PACKETS       each side sends so many packets in a connection event, 1 to 255
        pace off           data pass as fast as the hosts take them, as at the beginning
        show A B           what lies between them, and their connection
        connections        all connections
        """

    /// Reads a line for an air with `count` controllers.
    package static func parse(_ line: String, count: Int) throws(Failure) -> AirCommand {
        let words = line.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
        guard let name = words.first else { throw Failure(reason: "The line is empty. \(Self.names)") }
        switch name {
        case "signal":
            try need(words, "signal A B DBM|out|auto", 4)
            let (first, second) = (try controllers(words[1], count), try controllers(words[2], count))
            if words[3] == "out" { return .signal(first, second, nil) }
            if words[3] == "auto" { return .automatic(first, second) }
            return .signal(first, second, Int8(try number(words[3], -127...20, "a signal in dBm, out or auto")))
        case "loss":
            try need(words, "loss A B PERCENT", 4)
            return .loss(
                try controllers(words[1], count), try controllers(words[2], count),
                try number(words[3], 0...100, "a share in percent"))
        case "place":
            try need(words, "place A X Y", 4)
            return .place(
                try controllers(words[1], count), Air.Place(x: try metres(words[2]), y: try metres(words[3])))
        case "pace":
            try need(words, "pace PACKETS|off", 2)
            return .pace(words[1] == "off" ? nil : try number(words[1], 1...255, "a number of packets, or off"))
        case "show":
            try need(words, "show A B", 3)
            return .show(
                try number(words[1], 0...count - 1, "a controller"), try number(words[2], 0...count - 1, "a controller")
            )
        case "connections":
            try need(words, "connections", 1)
            return .connections
        default: throw Failure(reason: "There is no \"\(shortened(name))\". \(Self.names)")
        }
    }

    private static let names = "Write signal, loss, place, pace, show or connections."

    private static func need(_ words: [String], _ form: String, _ count: Int) throws(Failure) {
        if words.count != count {
            throw Failure(reason: "The line has \(words.count) words instead of \(count). Write: \(form)")
        }
    }

    /// One controller, those from one to another, or all.
    private static func controllers(_ word: String, _ count: Int) throws(Failure) -> ClosedRange<Int> {
        if word == "*" { return 0...count - 1 }
        let ends = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2, first >= 0, first <= last,
            last < count
        else {
            throw Failure(
                reason:
                    "\"\(shortened(word))\" is no controller. Write one of 0 to \(count - 1), two with - between, or *."
            )
        }
        return first...last
    }

    private static func number(_ word: String, _ range: ClosedRange<Int>, _ what: String) throws(Failure) -> Int {
        guard let number = Int(word), range.contains(number) else {
            throw Failure(
                reason:
                    "\"\(shortened(word))\" is not \(what). Numbers are from \(range.lowerBound) to \(range.upperBound)."
            )
        }
        return number
    }

    private static func metres(_ word: String) throws(Failure) -> Double {
        guard let number = Double(word), abs(number) <= 1_000_000 else {
            throw Failure(
                reason: "\"\(shortened(word))\" is no place in metres. Numbers are from -1000000 to 1000000.")
        }
        return number
    }

    private static func shortened(_ word: String) -> String { word.count > 40 ? word.prefix(40) + "..." : word }
}

/// Cuts bytes into lines; one that has no end within the limit is refused, and skipped to its end.
package struct LineReader: Sendable {
    package static let limit = 1024
    private var held: [UInt8] = []
    private var isTooLong = false

    package init() {}

    /// Takes bytes and returns the lines that they complete, nil for each that was too long.
    package mutating func read(_ bytes: some Sequence<UInt8>) -> [String?] {
        var lines: [String?] = []
        for byte in bytes {
            if byte == 0x0A {
                if held.last == 0x0D { held.removeLast() }
                lines.append(isTooLong ? nil : String(decoding: held, as: UTF8.self))
                held.removeAll(keepingCapacity: true)
                isTooLong = false
            } else if held.count == Self.limit {
                isTooLong = true
            } else {
                held.append(byte)
            }
        }
        return lines
    }
}

extension VirtualControllers {
    /// Does what a line says, and returns the answer: what it asks for, and "ok"; or "error:" and why not.
    package mutating func obey(_ line: String?) -> [String] {
        guard let line else { return ["error: The line is longer than \(LineReader.limit) bytes."] }
        do throws(AirCommand.Failure) {
            return carryOut(try AirCommand.parse(line, count: sides.count)) + ["ok"]
        } catch { return ["error: \(error.reason)"] }
    }

    private mutating func carryOut(_ command: AirCommand) -> [String] {
        switch command {
        case .signal(let first, let second, let signal):
            changeAir { air in Self.forEachPair(first, second) { air.setSignal(signal, $0, $1) } }
        case .automatic(let first, let second):
            changeAir { air in Self.forEachPair(first, second) { air.clearSignal($0, $1) } }
        case .loss(let first, let second, let loss):
            changeAir { air in Self.forEachPair(first, second) { air.setLoss(loss, $0, $1) } }
        case .place(let controllers, let place):
            changeAir { air in for controller in controllers { air.setPlace(place, of: controller) } }
        case .pace(let packets): changePace(packets)
        case .show(let first, let second):
            let isLinked = isConnected(first, second)
            return ["\(first) and \(second): \(description(first, second))\(isLinked ? ", connected" : "")"]
        case .connections:
            return connections.compactMap { $0 }.map { connection in
                let (central, peripheral) = (connection.ends[0].side, connection.ends[1].side)
                return "central \(central), peripheral \(peripheral): \(description(central, peripheral))"
            }
        }
        return []
    }

    private static func forEachPair(
        _ first: ClosedRange<Int>, _ second: ClosedRange<Int>, _ body: (Int, Int) -> Void
    ) {
        for one in first { for other in second where one != other { body(one, other) } }
    }

    private func description(_ first: Int, _ second: Int) -> String {
        let path = air.path(first, second)
        let signal = path.signal.map { "\($0) dBm" } ?? "out of reach"
        return "\(signal), \(path.loss) % lost"
    }
}
