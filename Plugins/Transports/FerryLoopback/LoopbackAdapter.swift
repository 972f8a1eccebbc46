public import Ferry
public import FerryBluetooth

/// An adapter on a ``LoopbackRadio``.
public final class LoopbackAdapter: BluetoothAdapter {
    /// What happens when a request asks for an encrypted connection.
    public enum Pairing: Sendable, Hashable {
        /// The two adapters pair, and the request goes on. Both sides must agree.
        case succeeds
        /// The request is answered with `insufficientAuthentication`, or with `insufficientEncryption` when the adapters
        /// had paired before.
        case refused
    }

    /// What to call the adapter in messages.
    public let name: String
    let radio: LoopbackRadio
    let index: Int

    init(radio: LoopbackRadio, index: Int, name: String) {
        self.radio = radio
        self.index = index
        self.name = name
    }

    /// Whether it can be used now.
    public var state: AdapterState { radio.locked { $0.nodes[index].state } }

    /// Changes the state. When it is no longer `poweredOn`, connections end on both sides, advertising and scans stop,
    /// waits for connections fail, and services are dropped: publish them again when the power is back.
    public func setState(_ state: AdapterState) { radio.locked { $0.setState(state, of: index) } }

    /// Says what happens from now on when a request asks for an encrypted connection. At first: it succeeds.
    public func setPairing(_ pairing: Pairing) { radio.locked { $0.nodes[index].pairing = pairing } }

    /// Who this adapter is to others that it is not paired with: its address, which it keeps as long as the radio lives.
    public var identity: PeerIdentity { RadioState.identity(ofNode: index, isProven: false) }

    /// The name by which this adapter knows another, as its discoveries and requests give it.
    public func identifier(of other: LoopbackAdapter) -> PeerID {
        radio.locked { $0.peerID(of: other.index, seenBy: index) }
    }

    /// Opens the peripheral role.
    public func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        let owner = radio.locked { radio in
            let id = radio.nextID()
            let node = radio.nodes[index]
            let state = node.state
            let owner = PeripheralOwner(id: id, node: index, sink: events)
            node.peripherals.append(id)
            radio.peripherals[id] = owner
            radio.events.append(.peripheral(id) { $0.peripheralAdapterDidChange(state) })
            radio.wake()
            return owner
        }
        return LoopbackPeripheralRole(radio: radio, owner)
    }

    /// Opens the central role.
    public func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
        let id = radio.locked { radio in
            let id = radio.nextID()
            let node = radio.nodes[index]
            let state = node.state
            node.centrals.append(id)
            radio.centrals[id] = CentralOwner(id: id, node: index, sink: events)
            radio.events.append(.central(id) { $0.centralAdapterDidChange(state) })
            radio.wake()
            return id
        }
        return LoopbackCentralRole(radio: radio, node: index, id: id)
    }
}
