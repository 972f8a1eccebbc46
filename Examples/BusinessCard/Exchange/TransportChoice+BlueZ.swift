import ArgumentParser
import FerryBluetooth

#if BlueZ
    import FerryBlueZ

    extension TransportChoice {
        /// What `--transport` takes for an adapter that bluetoothd serves.
        static let bluezForms = ["bluez", "bluez:hciN"]

        /// An adapter that bluetoothd serves.
        static func bluez(_ specification: String) throws -> TransportChoice {
            do throws(BluetoothError) { try BlueZAdapter.check(specification) } catch {
                throw ValidationError(error.message)
            }
            return TransportChoice(
                name: specification, reachesOtherProcesses: true, title: { _ in specification },
                open: { settings in
                    let gatt = GATTConfiguration(
                        service: CardService.service, characteristic: CardService.characteristic, rssi: settings.rssi)
                    return { _ in
                        DeferredTransport(configuration: gatt) { () async throws(BluetoothError) in
                            let adapter = try await BlueZAdapter.open(specification)
                            if let trouble = adapter.trouble {
                                throw BluetoothError(
                                    .notPoweredOn, "Adapter \(specification) cannot be used. \(trouble)")
                            }
                            if let advice = adapter.advice { Console.complain("\(specification): \(advice)") }
                            return adapter
                        }
                    }
                })
        }
    }
#else
    extension TransportChoice {
        /// None in this build.
        static let bluezForms: [String] = []

        /// Says how to get what is missing.
        static func bluez(_ specification: String) throws -> TransportChoice {
            throw ValidationError(
                "transport \(specification.printable) is not part of this build. Install libsystemd-dev and build with the "
                    + "trait BlueZ: swift run --traits BlueZ business-card ...; available now: \(list).")
        }
    }
#endif
