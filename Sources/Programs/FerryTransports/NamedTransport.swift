import ArgumentParser
package import Ferry
package import FerryBluetooth
package import FerryLoopback
package import FerrySocket

/// A transport by its name, ready to be opened.
package struct NamedTransport: Sendable, CustomStringConvertible {
    /// The name as it was typed.
    package let description: String
    /// Whether another process can be met over it.
    package let reachesOtherProcesses: Bool
    /// Whether this process can be at both ends.
    package let reachesItself: Bool
    /// The fixed ATT_MTU of the transport; nil where an app chooses.
    package let attMTU: Int?
    /// Whether what crosses can be captured (``RadioOptions/capture``).
    package let canCapture: Bool
    /// The socket; `nil` for a transport that has none.
    package let socket: SocketAddress?
    /// What it makes.
    package let opening: Opening

    /// Whether what crosses can leave this machine over a network, by whether this side listens.
    package func leavesMachine(_ isListening: Bool) -> Bool { socket?.leavesMachine(isListening: isListening) == true }

    /// Whether only this machine can connect: a Unix socket, or a loopback address.
    package var isOfThisMachine: Bool {
        guard case .links = opening else { return false }
        return !leavesMachine(true)
    }

    /// What a transport makes, and how.
    package enum Opening: Sendable {
        /// Adapters, over which GATT makes links.
        case adapters(AdapterMaker)
        /// Links without Bluetooth.
        case links(@Sendable () -> any Transport)
    }

    /// Prepares what the adapters share, and then opens as many as are asked for, each for a role's name.
    package typealias AdapterMaker =
        @Sendable (RadioOptions) throws(FerryError) -> @Sendable (String) async throws(FerryError) -> OpenedAdapter

    package init(
        _ description: String, reachesOtherProcesses: Bool = true, reachesItself: Bool = false, attMTU: Int? = nil,
        canCapture: Bool = false, socket: SocketAddress? = nil, _ opening: Opening
    ) {
        self.description = description
        self.reachesOtherProcesses = reachesOtherProcesses
        self.reachesItself = reachesItself
        self.attMTU = attMTU
        self.canCapture = canCapture
        self.socket = socket
        self.opening = opening
    }
}

/// An adapter, and what gives it back.
package struct OpenedAdapter: Sendable {
    package let adapter: any BluetoothAdapter
    package let close: @Sendable () -> Void
    /// The keys of peers; `nil` where the adapter does not pair.
    package let pairing: PairingControl?

    package init(
        _ adapter: any BluetoothAdapter, pairing: PairingControl? = nil, close: @escaping @Sendable () -> Void = {}
    ) {
        self.adapter = adapter
        self.pairing = pairing
        self.close = close
    }
}

/// The handling of peers' keys.
package struct PairingControl: Sendable {
    /// Encrypts the connection to a peer, and pairs with it where there is no key yet.
    package let pair: @Sendable (PeerID) async throws -> Void
    /// The peers whose keys are kept, with their addresses.
    package let bonded: @Sendable () async -> [(peer: PeerID, name: String)]
    /// Forgets the keys of a peer.
    package let forget: @Sendable (PeerID) async throws -> Void

    package init(
        pair: @escaping @Sendable (PeerID) async throws -> Void,
        bonded: @escaping @Sendable () async -> [(peer: PeerID, name: String)],
        forget: @escaping @Sendable (PeerID) async throws -> Void
    ) {
        self.pair = pair
        self.bonded = bonded
        self.forget = forget
    }
}

/// How an adapter pairs.
package struct RadioPairing: Sendable {
    /// The file that keeps keys; `nil` where they are forgotten with the adapter, or the system keeps them.
    package var bondFile: String?
    /// A person who can see, compare and enter numbers; `nil` for pairing without a number.
    package var agent: (any PairingAgent)?

    package init(bondFile: String? = nil, agent: (any PairingAgent)? = nil) {
        self.bondFile = bondFile
        self.agent = agent
    }
}

extension NamedTransport {
    /// Refuses to connect to port 0, by which a listener has the system choose one.
    ///
    /// - Throws: `ValidationError`.
    package func requireConnectable() throws {
        guard socket?.port == 0 else { return }
        throw ValidationError(
            "\(description) has port 0, by which a listener has the system choose one. Give the port that the other side tells."
        )
    }

    /// Whether the system keeps the keys of peers, and no file of a program's.
    package var keepsBonds: Bool { description.hasPrefix("bluez") }
}

/// How adapters are to behave, as far as each can.
package struct RadioOptions: Sendable {
    /// The ATT_MTU to ask for and agree to, 23 to 517; nil for the adapter's default.
    package var attMTU: Int?
    /// The connection interval to connect with; nil for the adapter's default.
    package var connectionInterval: Duration?
    /// The virtual radio, which takes nothing of the above.
    package var virtualRadio = LoopbackRadio.Configuration()
    /// How the adapter pairs; `nil` for not at all.
    package var pairing: RadioPairing?
    /// A file for what crosses, where ``NamedTransport/canCapture``.
    package var capture: String?
    /// Takes what could be better about an adapter, and how, and what of the above has ended.
    package var onAdvice: @Sendable (String) -> Void = { _ in }

    package init() {}
}

extension NamedTransport {
    /// Opens it, and makes a transport for each role's name. An adapter is opened when its transport is first used: what a
    /// command line names is checked before, and nothing is taken that is not used.
    ///
    /// - Parameters:
    ///   - configuration: the service that links cross, where it makes adapters.
    ///   - options: how the adapters are to behave.
    package func open(
        _ configuration: GATTConfiguration, _ options: RadioOptions
    ) throws(FerryError) -> @Sendable (_ role: String) -> any Transport {
        switch opening {
        case .adapters(let make):
            let adapter = try make(options)
            return { role in
                DeferredTransport { () async throws(FerryError) in
                    GATTTransport(adapter: try await adapter(role).adapter, configuration: configuration)
                }
            }
        case .links(let make): return { _ in make() }
        }
    }
}
