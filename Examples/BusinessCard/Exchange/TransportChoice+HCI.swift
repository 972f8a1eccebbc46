import ArgumentParser
import FerryBluetooth

#if HCI
    import FerryHCI

    extension TransportChoice {
        /// What `--transport` takes for a controller of one's own.
        static let hciForms = HCIChannel.forms

        /// An own Bluetooth LE host over an HCI channel.
        static func hci(_ specification: String) throws -> TransportChoice {
            let channel: HCIChannel
            do throws(BluetoothError) {
                channel = try HCIChannel(specification)
            } catch {
                throw ValidationError(error.message)
            }
            return TransportChoice(
                name: specification, reachesOtherProcesses: true, title: { _ in specification },
                open: { settings in
                    let gatt = GATTConfiguration(
                        service: CardService.service, characteristic: CardService.characteristic, rssi: settings.rssi)
                    var options = HCIConfiguration()
                    options.capture = settings.capture
                    return { [options] _ in
                        DeferredTransport(configuration: gatt) { () async throws(BluetoothError) in
                            try await HCIAdapter.open(channel, options)
                        }
                    }
                })
        }
    }
#else
    extension TransportChoice {
        /// None in this build.
        static let hciForms: [String] = []

        /// Says how to get what is missing.
        static func hci(_ specification: String) throws -> TransportChoice {
            throw ValidationError(
                "transport \(specification.printable) is not part of this build. Build with the trait HCI: swift run "
                    + "--traits HCI business-card ...; available now: \(list).")
        }
    }
#endif
