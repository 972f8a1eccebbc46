import ArgumentParser
import Ferry
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
                    return { _ in HCITransport(channel: channel, configuration: gatt, capture: settings.capture) }
                })
        }
    }

    /// GATT over a controller, which is opened when it is first needed.
    struct HCITransport: Transport {
        let channel: HCIChannel
        let configuration: GATTConfiguration
        var capture: String?

        private func transport() async throws(FerryError) -> GATTTransport {
            do throws(BluetoothError) {
                var options = HCIConfiguration()
                options.capture = capture
                return GATTTransport(
                    adapter: try await HCIAdapter.open(channel, options), configuration: configuration)
            } catch {
                throw FerryError(.transportUnavailable, error.message)
            }
        }

        func listen() async throws(FerryError) -> LinkListener { try await transport().listen() }

        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            try await transport().connect(timeout: timeout)
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
