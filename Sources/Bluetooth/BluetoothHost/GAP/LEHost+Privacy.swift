// Private addresses of this side's own, and the keys by which the controller knows those of peers (Core Specification 5.4,
// Vol 3, Part C, 10.7, and Vol 6, Part B, 1.3.2.2 and 6).

/// How a host keeps those who listen from knowing it again.
public struct PrivacyOptions: Sendable {
    /// Between what a timeout may be, in nanoseconds: 1 s to 1 h (Vol 4, Part E, 7.8.45).
    static let rotations: ClosedRange<Int64> = 1_000_000_000...3_600_000_000_000

    /// The identity resolving key, 16 bytes, most significant octet first. Peers that bond are given it, and know the host by
    /// it under each of its addresses, so it has to last as long as their keys.
    public var resolvingKey: [UInt8]
    /// How long an address serves, in nanoseconds: 1 s to 1 h. Default 15 minutes (Vol 3, Part C, Appendix A).
    public var rotation: Int64 = 900_000_000_000

    /// The recommended rotation.
    public init(resolvingKey: [UInt8]) { self.resolvingKey = resolvingKey }
}

/// Who this side says it is to peers that bond (Vol 3, Part H, 3.6.4 and 3.6.5).
struct OwnIdentity: Sendable {
    let resolvingKey: [UInt8]
    let address: Address
}

/// The address on the air, and what the controller knows of peers' private addresses. Neither may change while the controller
/// advertises, scans or connects, so that all of that pauses for it.
struct Privacy: Sendable {
    /// One peer in the controller's resolving list.
    struct Entry: Sendable, Equatable {
        let identity: Address
        let key: [UInt8]
    }

    /// What this side is called on the air now.
    var address: Address
    /// What it was called before, while it does not advertise by the new address: a connection that a central made in the moment
    /// of the change may be told of late, and is one of the old address's.
    var former: Address?
    /// When the address is to be another.
    var rotationDeadline: Int64?
    private(set) var due = Due.check
    var change = Change.none
    /// What the controller's resolving list holds.
    var listed: [Entry] = []
    /// Whether the controller has been seen to resolve an address. There are some that take a list and do not use it.
    var isListProven = false

    /// The work that waits until the controller can be asked.
    enum Due: Int, Sendable {
        case nothing
        /// Whether the resolving list is that of the bonds.
        case check
        /// The same, and the address is to be another.
        case rotation
    }

    /// A change of the address or the list. While there is one, nothing begins on the air.
    enum Change: Sendable, Equatable {
        case none
        /// Waits until nothing is on the air, and at most until then.
        case silencing(until: Int64)
        /// `outstanding` commands have not been answered. `listError`: the first error of the list.
        case commanding(outstanding: Int, listError: HCIErrorCode?)

        enum Outcome: Sendable { case done, listFailed(HCIErrorCode) }

        mutating func commandWasSent() {
            if case .commanding(let outstanding, let error) = self {
                self = .commanding(outstanding: outstanding + 1, listError: error)
            } else {
                self = .commanding(outstanding: 1, listError: nil)
            }
        }

        /// Returns the outcome with the last answer.
        mutating func commandDidEnd(listError: HCIErrorCode?) -> Outcome? {
            guard case .commanding(let outstanding, let former) = self else { return nil }
            let error = former ?? listError
            guard outstanding == 1 else {
                self = .commanding(outstanding: outstanding - 1, listError: error)
                return nil
            }
            self = .none
            return error.map { .listFailed($0) } ?? .done
        }
    }

    /// How long everything may take to fall silent, in nanoseconds.
    static let patience: Int64 = 5_000_000_000

    /// Whether nothing may begin on the air.
    var isHeld: Bool { change != .none }

    var deadline: Int64? {
        guard case .silencing(let until) = change else { return rotationDeadline }
        return min(rotationDeadline ?? .max, until)
    }

    mutating func require(_ due: Due) { if due.rawValue > self.due.rawValue { self.due = due } }

    /// Returns the work that was due, and clears it.
    mutating func takeDue() -> Due {
        defer { due = .nothing }
        return due
    }

    mutating func controllerWasReset() {
        listed = []
        isListProven = false
        change = .none
        require(.check)
        former = nil
    }
}

extension LEHost {
    /// What this side is called on the air now: its own address, or with privacy one that changes.
    public var address: Address { privacy.address }

    /// Who peers that bond are told this is.
    var ownIdentity: OwnIdentity? {
        configuration.privacy.map { OwnIdentity(resolvingKey: $0.resolvingKey, address: configuration.address) }
    }

    /// A resolvable private address of the host's own: 22 bits by chance, neither all 0 nor all 1, and their hash (Vol 6,
    /// Part B, 1.3.2.2). Nil without privacy, or without cryptography for it.
    static func makePrivateAddress(_ configuration: HostConfiguration) -> Address? {
        guard let privacy = configuration.privacy, privacy.resolvingKey.count == 16,
            let cryptography = configuration.cryptography
        else { return nil }
        let chance = cryptography.random(3).reduce(0) { $0 << 8 | UInt64($1) } & 0x3F_FFFF
        let prand = 0x40_0000 | (chance == 0 || chance == 0x3F_FFFF ? 0x2A_5A5A : chance)
        let hash = PairingFunctions(cryptography: cryptography).ah(privacy.resolvingKey, prand)
        return Address(prand << 24 | hash, .random)
    }

    /// Begins to count an address's time.
    mutating func beginRotation(at now: Int64) {
        guard let privacy = configuration.privacy, privacy.resolvingKey.count == 16 else { return }
        let bounds = PrivacyOptions.rotations
        self.privacy.rotationDeadline = now + min(max(privacy.rotation, bounds.lowerBound), bounds.upperBound)
    }

    mutating func expirePrivacy(at now: Int64) {
        if (privacy.rotationDeadline ?? .max) <= now {
            beginRotation(at: now)
            privacy.require(.rotation)
        }
        guard case .silencing(let until) = privacy.change, until <= now else { return }
        pending.events.append(.diagnostic("The controller does not fall silent; addresses stay as they are."))
        _ = privacy.takeDue()
        resumeOnAir(at: now)
    }

    /// Whether the controller connects to a peer under all its private addresses, by the key that it was given.
    func isResolvedByController(_ identity: Address) -> Bool {
        privacy.isListProven && privacy.listed.contains { $0.identity == identity }
    }

    /// The controller has told who is behind a private address.
    mutating func controllerDidResolve() { privacy.isListProven = true }

    // MARK: Changing

    /// Does the due work, once nothing is on the air.
    mutating func changeAddresses(at now: Int64) {
        if case .commanding = privacy.change { return }
        guard privacy.due != .nothing, state == .ready else { return }
        // The latest, where there is no room for all.
        let entries = Array(keyring.resolvable.suffix(controller.resolvingListSize))
        guard privacy.due == .rotation || entries != privacy.listed else {
            _ = privacy.takeDue()
            return resumeOnAir(at: now)
        }
        if !privacy.isHeld {
            privacy.change = .silencing(until: now + Privacy.patience)
            reconcileAdvertising(at: now)
            reconcileScanning(at: now)
            cancelAttempt(at: now)
        }
        guard isQuiet else { return }
        if privacy.takeDue() == .rotation, let address = Self.makePrivateAddress(configuration) {
            enqueue(.leSetRandomAddress, for: .privateAddress(address), at: now) { $0 += address.bytes }
        }
        if entries != privacy.listed { fillResolvingList(entries, at: now) }
        if case .silencing = privacy.change { resumeOnAir(at: now) }
    }

    /// Whether the controller neither advertises nor scans nor connects, nor is about to.
    private var isQuiet: Bool {
        advertiser.air == .off && scanner.air == .off && initiator.attempt == nil
    }

    private mutating func enqueue(
        _ opcode: Opcode, for purpose: CommandPurpose, at now: Int64, _ build: (inout [UInt8]) -> Void = { _ in }
    ) {
        privacy.change.commandWasSent()
        commands.enqueue(HCICommand(opcode, for: purpose, build), at: now)
    }

    /// Puts peers in the controller's list, in place of those that are there (Vol 4, Part E, 7.8.38, 7.8.40, 7.8.44 and 7.8.77).
    private mutating func fillResolvingList(_ entries: [Privacy.Entry], at now: Int64) {
        enqueue(.leSetAddressResolutionEnable, for: .resolvingList, at: now) { $0.append(0) }
        enqueue(.leClearResolvingList, for: .resolvingList, at: now)
        let own = configuration.privacy?.resolvingKey ?? []
        for entry in entries {
            enqueue(.leAddDeviceToResolvingList, for: .resolvingList, at: now) {
                $0 += [entry.identity.kind.rawValue] + entry.identity.bytes + entry.key.reversed()
                $0 += own.count == 16 ? own.reversed() : [UInt8](repeating: 0, count: 16)
            }
            // Device privacy: a peer that has stopped to use private addresses is heard too (Vol 6, Part B, 4.7).
            if controller.supports(.leSetPrivacyMode) {
                enqueue(.leSetPrivacyMode, for: .resolvingList, at: now) {
                    $0 += [entry.identity.kind.rawValue] + entry.identity.bytes + [0x01]
                }
            }
        }
        if !entries.isEmpty {
            enqueue(.leSetAddressResolutionEnable, for: .resolvingList, at: now) { $0.append(1) }
        }
        privacy.listed = entries
    }

    mutating func privacyCommandDidEnd(_ purpose: CommandPurpose, _ status: HCIErrorCode, at now: Int64) {
        var listError: HCIErrorCode?
        if case .privateAddress(let address) = purpose {
            if status == .success {
                privacy.former = privacy.address
                privacy.address = address
                pending.events.append(.diagnostic("This side is called \(address) from now on."))
            } else {
                pending.events.append(.diagnostic("The controller does not take another address: \(status)."))
            }
        } else if status != .success {
            listError = status
        }
        guard let outcome = privacy.change.commandDidEnd(listError: listError) else { return }
        if case .listFailed(let error) = outcome {
            pending.events.append(
                .diagnostic("The controller's resolving list cannot be used: \(error). The host resolves addresses."))
            controller.resolvingListSize = 0
            privacy.listed = []
            privacy.isListProven = false
        }
        resumeOnAir(at: now)
    }

    private mutating func resumeOnAir(at now: Int64) {
        privacy.change = .none
        reconcileAdvertising(at: now)
        reconcileScanning(at: now)
        reconcileInitiator(at: now)
    }
}

// Peers whose addresses change: known again by the keys that they gave when they paired (Core Specification 5.4, Vol 3,
// Part C, 10.7 and 10.8). The host resolves by itself, with every controller; where the controller has shown that it does so
// too, peers are connected to without being heard first.

extension LEHost {
    /// The address by which a peer is known for as long as there is a bond: its identity address for a private one that a
    /// bond's key resolves, the address itself otherwise. A claim, as every address is; ``LinkSecurity/isBonded`` proves it.
    public mutating func resolve(_ address: Address) -> Address { keyring.resolve(address) }

    // MARK: Connecting

    /// Whether a peer has to be heard before it can be connected to, for it may have another address by now.
    func hasToBeSought(_ peer: Address) -> Bool {
        guard let bond = keyring.bond(with: peer), bond.identityResolvingKey != nil else { return false }
        return !isResolvedByController(bond.lastingAddress)
    }

    /// Listens for a peer under all its addresses; the attempt to connect follows when it is heard.
    mutating func seek(_ peer: Address, at now: Int64) {
        initiator.sought.append(peer)
        if scanner.air.usesList { scanner.needsRestart = true }
        reconcileScanning(at: now)
    }

    /// Looks for the sought peers among advertisements.
    mutating func seek(among reports: [AdvertisingReport], at now: Int64) {
        guard !initiator.sought.isEmpty else { return }
        for report in reports where report.isConnectable && !report.isScanResponse {
            if report.isResolved { controllerDidResolve() }
            let lasting = resolve(report.address)
            let sought = initiator.sought
            guard let place = sought.firstIndex(where: { resolve($0) == lasting }) else { continue }
            let peer = initiator.sought.remove(at: place)
            initiator.found.append((report.address, peer))
            initiator.waiting.append(report.address)
        }
        reconcileScanning(at: now)
        reconcileInitiator(at: now)
    }

    /// No peer can be sought: the controller does not scan.
    mutating func seekingDidFail(_ status: HCIErrorCode) {
        for peer in initiator.sought { pending.events.append(.connectionFailed(peer: peer, status)) }
        initiator.sought = []
    }
}
