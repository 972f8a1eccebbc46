#if HCI
    public import BluetoothHost
    import Ferry
    public import FerryBluetooth
    import Synchronization

    /// How an adapter pairs: whenever a peer asks, and as central when something needs an encrypted link.
    public struct HCIPairing: Sendable {
        /// The person's means to see and enter numbers at this side. Without an ``agent`` there are none.
        public var capability = IOCapability.noInputNoOutput
        /// Who shows numbers and asks for them, and whether to pair where there are none.
        public var agent: (any PairingAgent)?
        /// Whether pairing without a number is refused: it protects against those who listen, not against those who stand
        /// in the middle.
        public var requiresAuthentication = false
        /// Whether pairing of Bluetooth 4.0 and 4.1 is refused, whose key can be found by those who listen.
        public var requiresSecureConnections = false
        /// Whether peers may ask to pair; ``HCIAdapter/isPairable`` changes it later.
        public var isPairable = true
        /// Whether keys of a peer may be replaced by weaker ones, or by such that were made without a number, if the agent
        /// allows the pairing. Anybody can use a peer's address, so the peer should be forgotten instead
        /// (``HCIAdapter/forget(_:)``) when it has lost its keys.
        public var replacesKeys = false
        /// Peers whose keys are kept, at most; further ones are paired with for the connection only. Centrals that pair without a
        /// number get at most a quarter of the places within an hour, and lose theirs first when they do not come back.
        public var maximumBonds = 64
        /// A file that keeps the keys of peers, and this adapter's address by which they know it; nil to forget both
        /// with the adapter. It is made with access for its owner only. One adapter uses it at a time. A second file,
        /// with `.peers` at the end of its name, keeps the discovered services of the peers, so that they are not
        /// discovered again.
        public var bondFile: String?

        /// Just Works, and keys forgotten with the adapter.
        public init() {}

        /// With a person, if any, who can see, compare and enter numbers.
        package init(bondFile: String?, agent: (any PairingAgent)?) {
            self.bondFile = bondFile
            self.agent = agent
            if agent != nil { capability = .keyboardDisplay }
        }

        var options: PairingOptions {
            var options = PairingOptions(cryptography: LibraryCryptography())
            options.capability = agent == nil ? .noInputNoOutput : capability
            options.requiresAuthentication = requiresAuthentication
            options.requiresSecureConnections = requiresSecureConnections
            options.asksToAllow = agent != nil
            options.maximumBonds = maximumBonds
            return options
        }
    }

    extension HCIAdapter {
        /// Encrypts the connection to a peer, by pairing where there is no key yet; as peripheral, asks the central to.
        ///
        /// - Throws: `notConnected`; `notSupported` when pairing is switched off or the controller cannot encrypt; `att`
        ///   with `insufficientAuthentication` and the reason when it fails; the reason of a disconnection.
        public func pair(with peer: PeerID) async throws(BluetoothError) { try await engine.pair(with: peer) }

        /// Whether peers may ask to pair. Those whose keys are kept come back all the same, and ``pair(with:)`` goes on.
        public var isPairable: Bool {
            get { engine.state.withLock { $0.host.isPairable } }
            set { engine.state.withLock { $0.host.isPairable = newValue } }
        }

        /// Data to give a peer by another way than the radio, such as NFC or a code to scan, so that no number is needed to pair
        /// with it (LE Secure Connections). They are good for one pairing, in place of those made before; nil when pairing is
        /// switched off. With ``HCIConfiguration/privacy`` the address in them changes with the adapter's.
        public func makeOutOfBandData() -> OutOfBandData? {
            engine.state.withLock { $0.host.makeOutOfBandData() }
        }

        /// Takes the data that a peer has made, for the next pairing with it, and returns its name. 16 peers' are kept.
        ///
        /// - Throws: `invalidArgument` when they are not of 16 bytes each.
        public func useOutOfBandData(_ data: OutOfBandData) throws(BluetoothError) -> PeerID {
            try engine.state.withLock { state throws(BluetoothError) in
                guard state.host.useOutOfBandData(data) else {
                    throw BluetoothError(
                        .invalidArgument, "Out-of-band data have a confirm value and a random value of 16 bytes each.")
                }
                return state.peerID(data.address)
            }
        }

        /// Takes a key that both sides have by another way than the radio, for the next pairing with a peer from before Bluetooth
        /// 4.2, and returns the peer's name. Other peers pair more safely by ``useOutOfBandData(_:)``. 16 peers' keys are kept.
        ///
        /// - Throws: `invalidArgument` when it has not 16 bytes, most significant octet first.
        public func useTemporaryKey(_ key: [UInt8], of address: Address) throws(BluetoothError) -> PeerID {
            try engine.state.withLock { state throws(BluetoothError) in
                guard state.host.useTemporaryKey(key, of: address) else {
                    throw BluetoothError(
                        .invalidArgument, "A temporary key has 16 bytes; \(key.count) were given.")
                }
                return state.peerID(address)
            }
        }

        /// How strong the connection to a peer is now; nil when there is none.
        public func security(of peer: PeerID) -> LinkSecurity? { engine.security(of: peer) }

        /// The peers whose keys are kept.
        public var bondedPeers: [PeerID] {
            engine.state.withLock { state in state.host.bonds.map(\.peer).map { state.peerID($0) } }
        }

        /// The same, with their addresses.
        package var bonds: [(peer: PeerID, name: String)] {
            engine.state.withLock { state in
                state.host.bonds.map(\.peer).map {
                    (state.peerID($0), PeerIdentity($0, isProven: false, lasts: true).name)
                }
            }
        }

        /// Forgets a peer's keys, also where it uses another private address by now. A connection that is encrypted stays so.
        ///
        /// - Throws: `invalidArgument` when the bond file cannot be written.
        public func forget(_ peer: PeerID) throws(BluetoothError) { try engine.forget(peer) }
    }
#endif
