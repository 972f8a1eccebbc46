import Ferry
import FerryBluetooth

#if BlueZ
    import FerryBlueZ

    extension TransportKind {
        /// An adapter that bluetoothd serves.
        static let bluez = available("bluez", forms: ["bluez", "bluez:hciN"]) { (text) throws(FerryError) in
            do throws(BluetoothError) { try BlueZAdapter.check(text) } catch {
                throw FerryError(.invalidConfiguration, error.message)
            }
            return NamedTransport(
                text, attMTU: 517,
                .adapters { (options) throws(FerryError) in
                    { (_) async throws(FerryError) in
                        do throws(BluetoothError) {
                            let adapter = try await BlueZAdapter.open(text)
                            if let trouble = adapter.trouble {
                                throw BluetoothError(.notPoweredOn, "Adapter \(text) cannot be used. \(trouble)")
                            }
                            if let advice = adapter.advice { options.onAdvice("\(text): \(advice)") }
                            return OpenedAdapter(adapter) { adapter.close() }
                        } catch {
                            throw FerryError(.transportUnavailable, error.message)
                        }
                    }
                })
        }
    }
#else
    extension TransportKind {
        static let bluez = missing("bluez", trait: "BlueZ", install: "libsystemd-dev")
    }
#endif
