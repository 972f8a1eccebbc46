import ArgumentParser
import Ferry
import FerryBluetooth

/// `ferry inspect`: what a peripheral offers.
struct Inspect: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows a peripheral's services, characteristics and values.",
        discussion: """
            ferry inspect --transport loopback "Ferry room"     # a demonstration, without a radio

            Ends with 0, 1 where the peripheral was not found or was lost, 64 for wrong usage, 130 after Ctrl-C.
            """)

    @OptionGroup var options: PeerOptions

    @Option(name: .customLong("as"), help: ArgumentHelp("How values are shown.", valueName: "format"))
    var format = ValueFormat.auto

    @Flag(help: "Read no values.")
    var noValues = false

    func run() async throws {
        let (isJSON, format, reads) = (options.explore.json, format, !noValues)
        try await options.run { visit in
            let tree = try await Self.tree(visit, format, reads: reads)
            if isJSON { try Output.line(tree) } else { try Output.print(tree.text().harmless) }
        }
    }

    static func tree(_ visit: Visit, _ format: ValueFormat, reads: Bool) async throws -> AttributeTree {
        let all = try await visit.attributes()
        var services: [AttributeTree.Service] = []
        for (service, found) in all {
            var shown = AttributeTree.Service(uuid: service.uuid.description, name: service.uuid.name)
            for found in found {
                let characteristic = try await self.characteristic(found.characteristic, visit, format, reads)
                shown.characteristics.append(characteristic)
            }
            services.append(shown)
        }
        return AttributeTree(
            name: visit.name, identity: visit.connection.identity.name, rssi: visit.rssi,
            attMTU: visit.connection.attMTU, services: services)
    }

    private static func characteristic(
        _ characteristic: RemoteCharacteristic, _ visit: Visit, _ format: ValueFormat, _ reads: Bool
    ) async throws -> AttributeTree.Characteristic {
        var shown = AttributeTree.Characteristic(
            uuid: characteristic.uuid.description, name: characteristic.uuid.name,
            properties: characteristic.properties.words)
        guard reads else { return shown }
        do throws(BluetoothError) {
            if characteristic.properties.contains(.read) {
                let value = try await visit.connection.readValue(of: characteristic.id)
                shown.hex = ValueFormat.hexadecimal(value)
                shown.value = format.text(value, of: characteristic.uuid)
            }
            let descriptors = try await visit.connection.discoverDescriptors(of: characteristic.id)
            if let description = descriptors.first(where: { $0.uuid == .characteristicUserDescription }) {
                let text = try await visit.connection.readValue(of: description.id)
                shown.description = String(decoding: text, as: UTF8.self)
            }
        } catch {
            // What the peripheral refuses is part of the answer; a connection that has ended is not.
            guard error.code.attError != nil else { throw error }
            shown.error = error.words
        }
        return shown
    }
}
