#if BlueZ
    public import FerryBluetooth

    /// How an adapter pairs: an agent that bluetoothd asks (org.bluez.Agent(5)), registered while the adapter is open.
    ///
    /// With one, bluetoothd pairs by itself when a peer asks, and when a peer refuses something because the connection is not
    /// encrypted. The keys are bluetoothd's, and so is how long it keeps them.
    public struct BlueZPairing: Sendable {
        /// What a person at this side can see and enter (Core Specification 5.4, Vol 3, Part H, 2.3.2).
        public enum Capability: String, Sendable, Hashable, CaseIterable {
            /// Six digits can be shown.
            case displayOnly = "DisplayOnly"
            /// Six digits can be shown and compared.
            case displayYesNo = "DisplayYesNo"
            /// Six digits can be entered.
            case keyboardOnly = "KeyboardOnly"
            /// Nothing: pairing without a number ("Just Works").
            case noInputNoOutput = "NoInputNoOutput"
            /// Six digits can be shown, compared and entered.
            case keyboardDisplay = "KeyboardDisplay"
        }

        /// The person's means to see and enter numbers at this side. Without an ``agent`` there are none.
        public var capability = Capability.noInputNoOutput
        /// Who shows numbers and asks for them; nil lets every peer pair without a number.
        public var agent: (any PairingAgent)?
        /// Whether to answer for the whole system: whichever adapter and program a peer pairs with. Otherwise the agent
        /// answers for what ``BlueZAdapter/pair(with:)`` begins, and for the rest only when the system has no other.
        public var isDefault = true

        /// Just Works, for the whole system.
        public init() {}
    }

    extension BlueZAdapter {
        /// Pairs with a peer, connecting to it first if need be: as central at once, as peripheral by asking the central.
        /// Nothing happens when they are paired already. Cancelling the task cancels the pairing.
        ///
        /// - Throws: `unknownPeer`; `att` with `insufficientAuthentication` and the reason when it fails or is refused;
        ///   `timedOut`; `connectionFailed`; `cancelled`; `notPoweredOn`; `notSupported` when bluetoothd refused the agent.
        public func pair(with peer: PeerID) async throws(BluetoothError) { try await engine.pair(with: peer) }

        /// The peers that bluetoothd keeps keys of for this adapter, in the order of their addresses.
        public var bondedPeers: [PeerID] { get async { await engine.bondedPeers } }

        /// The same, with their addresses.
        package var bonds: [(peer: PeerID, name: String)] { get async { await engine.bonds } }

        /// Has bluetoothd forget a peer, with its keys; a connection to it ends. Unknown ones are ignored.
        ///
        /// - Throws: `notPoweredOn`, or `connectionFailed` with what bluetoothd says.
        public func forget(_ peer: PeerID) async throws(BluetoothError) { try await engine.forget(peer) }
    }
#endif
