import Ferry
import FerryBluetooth

#if HCI
    import FerryHCI

    extension TransportKind {
        /// A controller of one's own, with Ferry's host.
        static let hci = available("hci", forms: HCIChannel.forms) { (text) throws(FerryError) in
            let channel: HCIChannel
            do throws(BluetoothError) { channel = try HCIChannel(text) } catch {
                throw FerryError(.invalidConfiguration, error.message)
            }
            return NamedTransport(
                channel.description, canCapture: true,
                .adapters { (options) throws(FerryError) in
                    var configuration = HCIConfiguration()
                    configuration.capture = options.capture
                    configuration.onCaptureFailure = options.onAdvice
                    configuration.maximumMTU = options.attMTU ?? configuration.maximumMTU
                    if let interval = options.connectionInterval {
                        let units = UInt16(clamping: Int((interval / .microseconds(1250)).rounded()))
                        configuration.connectionInterval = units...units
                    }
                    configuration.pairing = options.pairing.map { HCIPairing(bondFile: $0.bondFile, agent: $0.agent) }
                    let pairs = options.pairing != nil
                    return { [configuration] (_) async throws(FerryError) in
                        do throws(BluetoothError) {
                            let adapter = try await HCIAdapter.open(channel, configuration)
                            let control = PairingControl(
                                pair: { try await adapter.pair(with: $0) }, bonded: { adapter.bonds },
                                forget: { try adapter.forget($0) })
                            return OpenedAdapter(adapter, pairing: pairs ? control : nil) { adapter.close() }
                        } catch {
                            throw FerryError(.transportUnavailable, error.message)
                        }
                    }
                })
        }
    }
#else
    extension TransportKind {
        static let hci = missing("hci", trait: "HCI")
    }
#endif
