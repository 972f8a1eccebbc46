import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLab
import Foundation

/// The printed form of a value.
struct ValueLine: Encodable {
    var seconds: Double?
    var service: String
    var characteristic: String
    var name: String?
    var hex: String
    var value: String
    /// Numbers in units, for characteristics that ``KnownValue`` knows.
    var decoded: KnownValue?

    init(_ found: AttributeName.Found, _ value: [UInt8], _ format: ValueFormat, after elapsed: Duration? = nil) {
        seconds = elapsed.map { ($0 / .milliseconds(1)).rounded() / 1000 }
        service = found.service.uuid.description
        characteristic = found.characteristic.uuid.description
        name = found.characteristic.uuid.name
        hex = ValueFormat.hexadecimal(value)
        self.value = format.text(value, of: found.characteristic.uuid)
        decoded = KnownValue(value, of: found.characteristic.uuid)
    }

    /// For people: seconds, name, value.
    var text: String {
        [seconds.map { number($0, 3) }, name ?? characteristic, value].compactMap { $0 }.joined(separator: "  ")
    }
}

/// `ferry read`: one value.
struct Read: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Reads the value of a peripheral's characteristic.",
        discussion: """
            ferry read --transport loopback "Ferry room" "Battery Level" --as uint8

            Ends with 0, 1 where the value could not be read or is none of --as, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeerOptions

    @Argument(help: "The characteristic: its UUID or name, with its service where that is needed, such as 180F/2A19.")
    var characteristic: String

    @Option(name: .customLong("as"), help: ArgumentHelp("How the value is shown.", valueName: "format"))
    var format = ValueFormat.auto

    @Option(
        help: ArgumentHelp("Read this descriptor of the characteristic: its UUID or name.", valueName: "descriptor"))
    var descriptor: String?

    func run() async throws {
        let (isJSON, format, name, descriptor) = (options.explore.json, format, characteristic, descriptor)
        try await options.run { visit in
            var found = try await visit.characteristic(name)
            let value: [UInt8]
            if let descriptor {
                let own = try await visit.descriptor(descriptor, of: found)
                value = try await visit.connection.readValue(of: own.id)
                found.characteristic = RemoteCharacteristic(id: own.id, uuid: own.uuid, properties: [])
            } else {
                value = try await visit.connection.readValue(of: found.characteristic.id)
            }
            try format.check(value)
            let line = ValueLine(found, value, format)
            if isJSON { try Output.line(line) } else { try Output.print(line.value.harmless + "\n") }
        }
    }
}

extension ValueFormat {
    /// Refuses a value that this is not.
    func check(_ value: [UInt8]) throws {
        switch self {
        case .auto, .hex: return
        case .text: if value.isEmpty || Self.quoted(value) != nil { return }
        default: if numbers(value) != nil { return }
        }
        throw CommandFailure(
            "The value is no \(rawValue): \(value.count) bytes, \(ValueFormat.hex.text(value)). Choose another --as.")
    }
}

/// `ferry write`: one value.
struct Write: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes the value of a peripheral's characteristic.",
        discussion: """
            ferry write --transport loopback "Ferry room" E07F0AE8-00BB-47F5-94F4-4A7174EA3051 --as text "Hello"

            Numbers lie little end first, as GATT has them; several are separated by spaces. Ends with 0, 1 where the \
            peripheral did not take the value, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeerOptions

    @Argument(help: "The characteristic: its UUID or name, with its service where that is needed, such as 180F/2A19.")
    var characteristic: String

    @Argument(help: "The value: hexadecimal, such as 01FF, or as --as says. Begin with -- where it begins with -.")
    var value: String

    @Option(name: .customLong("as"), help: ArgumentHelp("What the value is.", valueName: "format"))
    var format = ValueFormat.hex

    @Flag(help: "Ask for no answer. Whether the peripheral took the value stays unknown.")
    var withoutResponse = false

    @Flag(help: "Read the value afterwards and print it.")
    var readBack = false

    @Option(
        help: ArgumentHelp("Write this descriptor of the characteristic: its UUID or name.", valueName: "descriptor"))
    var descriptor: String?

    func validate() throws {
        if descriptor != nil, withoutResponse {
            throw ValidationError("A write to a descriptor is always answered. Leave --without-response out.")
        }
        do throws(BluetoothError) { _ = try format.bytes(value) } catch { throw ValidationError(error.message) }
    }

    func run() async throws {
        let (name, format, isJSON) = (characteristic, format, options.explore.json)
        let (bytes, withoutResponse, readBack) = (try format.bytes(value), withoutResponse, readBack)
        let descriptor = descriptor
        try await options.run { visit in
            var found = try await visit.characteristic(name)
            if let descriptor {
                let own = try await visit.descriptor(descriptor, of: found)
                try await visit.connection.writeValue(bytes, to: own.id)
                found.characteristic = RemoteCharacteristic(id: own.id, uuid: own.uuid, properties: [])
            } else if withoutResponse {
                try await Self.send(bytes, to: found.characteristic, over: visit)
            } else {
                guard found.characteristic.properties.contains(.write) else {
                    throw Self.refusal(found.characteristic)
                }
                try await visit.connection.writeValue(bytes, to: found.characteristic.id)
            }
            guard readBack else { return }
            let value = try await visit.connection.readValue(of: found.characteristic.id)
            let line = ValueLine(found, value, format)
            if isJSON { try Output.line(line) } else { try Output.print(line.value.harmless + "\n") }
        }
    }

    private static func refusal(_ characteristic: RemoteCharacteristic) -> CommandFailure {
        let offers = characteristic.properties.words
        let advice = characteristic.properties.contains(.writeWithoutResponse) ? " Try --without-response." : ""
        return CommandFailure(
            "\(characteristic.uuid.label) takes no such writes; it offers: "
                + "\(offers.isEmpty ? "nothing" : offers.joined(separator: ", ")).\(advice)")
    }

    private static func send(_ bytes: [UInt8], to characteristic: RemoteCharacteristic, over visit: Visit) async throws
    {
        guard characteristic.properties.contains(.writeWithoutResponse) else { throw refusal(characteristic) }
        // Nothing else is queued on this connection, so there is a place for it.
        guard try visit.connection.tryWriteValue(bytes.span.bytes, to: characteristic.id, type: .withoutResponse) else {
            throw CommandFailure("The adapter takes no value at present.")
        }
    }
}

/// `ferry watch`: values as they come.
struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Subscribes to a peripheral's characteristics and prints their values as they come.",
        discussion: """
            ferry watch --transport loopback "Ferry room" Temperature --as int16
            ferry watch --transport loopback "Ferry belt" --count 10

            Each line has the seconds since the subscription, the characteristic and the value. Ends with 0 after --count or \
            --seconds, or when its reader has gone, 1 where the peripheral was not found, refuses, or was lost, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeerOptions

    @Argument(help: "The characteristics: UUIDs or names. (default: all that notify or indicate)")
    var characteristics: [String] = []

    @Option(name: .customLong("as"), help: ArgumentHelp("How values are shown.", valueName: "format"))
    var format = ValueFormat.auto

    @Option(help: ArgumentHelp("End after this number of values.", valueName: "number"))
    var count: Int?

    @Option(help: ArgumentHelp("End after this time. (default: never)", valueName: "seconds"))
    var seconds: Double?

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is \(count); give 1 or more.") }
        if let seconds, !(0.1...1e6).contains(seconds) {
            throw ValidationError("--seconds is \(seconds); give 0.1 to 1000000.")
        }
    }

    func run() async throws {
        let (isJSON, format, names) = (options.explore.json, format, characteristics)
        let (count, seconds) = (count ?? .max, seconds)
        try await options.run { visit in
            let all = try await visit.attributes()
            let targets = try Self.targets(names, among: all.flatMap(\.found))
            let start = SystemTime().now
            visit.events.watch(Set(targets.map(\.service.id)))
            for target in targets {
                let subscription: Subscription =
                    target.characteristic.properties.contains(.notify) ? .notify : .indicate
                try await visit.connection.setSubscription(subscription, to: target.characteristic.id)
            }
            note("ferry: watching \(targets.map(\.characteristic.uuid.label).joined(separator: ", "))")
            let timer = seconds.map { seconds in
                SystemTime().schedule(at: start + .seconds(seconds)) { visit.events.stop() }
            }
            defer { timer?.cancel() }
            var shown = 0
            for await update in visit.events.updates {
                guard let target = targets.first(where: { $0.characteristic.id == update.characteristic }) else {
                    continue
                }
                let line = ValueLine(target, update.value, format, after: max(.zero, update.time - start))
                if isJSON { try Output.line(line) } else { try Output.print(line.text.harmless + "\n") }
                shown += 1
                if shown >= count { break }
            }
            try Task.checkCancellation()
            if visit.events.dropped > 0 {
                note("ferry: \(visit.events.dropped) values came faster than they could be printed, and are left out.")
            }
            if shown < count, let reason = visit.events.reason {
                throw CommandFailure("The connection has ended: \(reason.message)")
            }
            if shown < count, visit.events.isWithdrawn {
                throw CommandFailure(
                    "The peripheral has changed or withdrawn the watched characteristic; the connection lasts. Look at it again: ferry inspect."
                )
            }
        }
    }

    /// The characteristics that are meant, each of which can be subscribed to.
    static func targets(_ names: [String], among all: [AttributeName.Found]) throws -> [AttributeName.Found] {
        let offering: CharacteristicProperties = [.notify, .indicate]
        guard !names.isEmpty else {
            let targets = all.filter { !$0.characteristic.properties.isDisjoint(with: offering) }
            guard !targets.isEmpty else { throw CommandFailure("Nothing that it offers can be subscribed to.") }
            return targets
        }
        return try names.map { name in
            let found = try AttributeName(name).find(in: all)
            guard !found.characteristic.properties.isDisjoint(with: offering) else {
                throw CommandFailure(
                    "\(found.characteristic.uuid.label) neither notifies nor indicates; it offers: "
                        + "\(found.characteristic.properties.words.joined(separator: ", ")).")
            }
            return found
        }
    }
}
