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
                            var pairing: BlueZPairing?
                            if let wanted = options.pairing {
                                var own = BlueZPairing()
                                own.agent = wanted.agent
                                if wanted.agent != nil { own.capability = .keyboardDisplay }
                                pairing = own
                            }
                            let adapter = try await BlueZAdapter.open(text, pairing: pairing)
                            if let trouble = adapter.trouble {
                                throw BluetoothError(.notPoweredOn, "Adapter \(text) cannot be used. \(trouble)")
                            }
                            if let advice = adapter.advice { options.onAdvice("\(text): \(advice)") }
                            let control = PairingControl(
                                pair: { try await adapter.pair(with: $0) }, bonded: { await adapter.bonds },
                                forget: { try await adapter.forget($0) })
                            return OpenedAdapter(adapter, pairing: pairing == nil ? nil : control) { adapter.close() }
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
