// Private addresses of this side's own, and the keys by which the controller knows those of peers (Core Specification 5.4,
// Vol 3, Part C, 10.7, and Vol 6, Part B, 1.3.2.2 and 6).

/// How a host keeps those who listen from knowing it again.
public struct PrivacyOptions: Sendable {
    /// Between what a timeout may be, in nanoseconds: 1 s to 1 h (Vol 4, Part E, 7.8.45).
    static let rotations: ClosedRange<Int64> = 1_000_000_000...3_600_000_000_000

    /// The identity resolving key, 16 bytes, most significant octet first. Peers that bond are given it, and know the host by
    /// it under whatever address, so it has to last as long as their keys.
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
    var isRotationDue = false
    /// Whether it is to be seen whether anything has to change.
    var isDue = true
    /// Nothing begins on the air before this time, or before the change is over.
    var heldUntil: Int64?
    /// What the controller's resolving list holds.
    var listed: [Entry] = []
    /// Whether the controller has been seen to resolve an address. There are some that take a list and do not use it.
    var isListProven = false
    /// Commands of a change that have not been answered.
    var outstanding = 0
    /// The first error that the list met in this change.
    var listError: HCIErrorCode?

    /// How long everything may take to fall silent, in nanoseconds.
    static let patience: Int64 = 5_000_000_000

    /// Whether nothing may begin on the air.
    var isHeld: Bool { heldUntil != nil }

    var deadline: Int64? { [rotationDeadline, outstanding == 0 ? heldUntil : nil].compactMap(\.self).min() }

    mutating func controllerWasReset() {
        listed = []
        isListProven = false
        outstanding = 0
        listError = nil
        heldUntil = nil
        isDue = true
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
            privacy.isRotationDue = true
            privacy.isDue = true
        }
        guard privacy.outstanding == 0, (privacy.heldUntil ?? .max) <= now else { return }
        pending.events.append(.diagnostic("The controller does not fall silent; addresses stay as they are."))
        privacy.isDue = false
        privacy.isRotationDue = false
        resumeOnAir(at: now)
    }

    /// Whether the controller connects to a peer under whatever address by the key that it was given.
    func isResolvedByController(_ identity: Address) -> Bool {
        privacy.isListProven && privacy.listed.contains { $0.identity == identity }
    }

    /// The controller has told who is behind a private address.
    mutating func controllerDidResolve() { privacy.isListProven = true }

    // MARK: Changing

    /// Peers for the resolving list: those that gave a key, the latest where there is no room for all. Not those whose identity is
    /// only claimed: the controller would tell of them by the address of another.
    private var resolvable: [Privacy.Entry] {
        let entries = bonds.filter(\.isIdentityBelieved).compactMap { bond in
            bond.identity.flatMap { identity in
                bond.identityResolvingKey.map { Privacy.Entry(identity: identity, key: $0) }
            }
        }
        return Array(entries.suffix(controller.resolvingListSize))
    }

    /// Lets what is due happen, once nothing is on the air.
    mutating func changeAddresses(at now: Int64) {
        guard privacy.isDue, state == .ready, privacy.outstanding == 0 else { return }
        let entries = resolvable
        guard privacy.isRotationDue || entries != privacy.listed else {
            privacy.isDue = false
            return resumeOnAir(at: now)
        }
        if !privacy.isHeld {
            privacy.heldUntil = now + Privacy.patience
            reconcileAdvertising(at: now)
            reconcileScanning(at: now)
            if !initiator.current.isEmpty { cancelAttempt(at: now) }
        }
        guard isQuiet else { return }
        privacy.isDue = false
        if privacy.isRotationDue, let address = Self.makePrivateAddress(configuration) {
            enqueue(.leSetRandomAddress, for: .privateAddress(address), at: now) { $0 += address.bytes }
        }
        privacy.isRotationDue = false
        if entries != privacy.listed { fillResolvingList(entries, at: now) }
        if privacy.outstanding == 0 { resumeOnAir(at: now) }
    }

    /// Whether the controller neither advertises nor scans nor connects, nor is about to.
    private var isQuiet: Bool {
        advertiser.applied == nil && advertiser.changing == nil && !scanner.isOn && scanner.changing == nil
            && initiator.current.isEmpty
    }

    private mutating func enqueue(
        _ opcode: Opcode, for purpose: CommandPurpose, at now: Int64, _ build: (inout [UInt8]) -> Void = { _ in }
    ) {
        privacy.outstanding += 1
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
        privacy.outstanding -= 1
        if case .privateAddress(let address) = purpose {
            if status == .success {
                privacy.former = privacy.address
                privacy.address = address
                pending.events.append(.diagnostic("This side is called \(address) from now on."))
            } else {
                pending.events.append(.diagnostic("The controller does not take another address: \(status)."))
            }
        } else if status != .success, privacy.listError == nil {
            privacy.listError = status
        }
        guard privacy.outstanding == 0 else { return }
        if let error = privacy.listError.take() {
            pending.events.append(
                .diagnostic("The controller's resolving list cannot be used: \(error). The host resolves addresses."))
            controller.resolvingListSize = 0
            privacy.listed = []
            privacy.isListProven = false
        }
        resumeOnAir(at: now)
    }

    private mutating func resumeOnAir(at now: Int64) {
        privacy.heldUntil = nil
        reconcileAdvertising(at: now)
        reconcileScanning(at: now)
        reconcileInitiator(at: now)
    }
}
