import Ferry
public import FerryBluetooth

/// Checks a pair of ``/FerryBluetooth/BluetoothAdapter``s that hear each other against the seam's written contract. Any test library runs
/// it: a failed check is thrown as a ``ConformanceFailure``, and every wait has a deadline.
///
/// ```swift
/// @Test(arguments: AdapterConformance.Requirement.allCases)
/// func keepsTheContract(_ requirement: AdapterConformance.Requirement) async throws {
///     try await AdapterConformance(peripheral: a, central: b, time: .system).check(requirement)
/// }
/// ```
///
/// Checks leave nothing behind: the same two adapters can run all of them.
public struct AdapterConformance: Sendable {
    /// The requirements, each checked by itself.
    public enum Requirement: String, Sendable, CaseIterable {
        // Finding and connecting.
        /// The first event of a role is the adapter's state.
        case theStateComesFirst
        /// A scan for a service finds who advertises it, and reports it once.
        case scansFilterByService
        /// Name and signal-strength filters hold back what does not match.
        case scansFilterByNameAndRSSI
        /// A peripheral that this adapter has not met is `unknownPeer`.
        case unknownPeersAreRefused
        /// A wait for a connection ends when its task is cancelled.
        case waitsForConnectionsCanBeCancelled
        /// Services, included services, characteristics and descriptors are found as they were published.
        case discoveryFindsWhatWasPublished
        /// ATT_MTU is 23 to 517, and both sides' limits follow from it.
        case limitsFollowFromATTMTU

        // Reading and writing.
        /// A fixed value is read whole, however long.
        case longFixedValuesAreReadWhole
        /// Reads of other values come as requests with offsets.
        case readsComeAsRequestsWithOffsets
        /// The ATT error that the owner answers with reaches the reader and the writer.
        case answeredErrorsArrive
        /// What the properties and permissions do not allow is refused with the right ATT error.
        case permissionsAreEnforced
        /// A write with response comes as a request and is answered.
        case writesWithResponseAreAnswered
        /// A long write comes as one request whose parts make up the value.
        case longWritesComeAsOneRequest
        /// Writes without response arrive in order; false when the queue is full, then ready.
        case writesWithoutResponseArriveInOrder
        /// Of queued writes with response one waits at a time, and its answer is an event.
        case oneQueuedWriteWithResponseWaits
        /// Too long, unknown and unsupported writes throw.
        case wrongWritesThrow

        // Subscribing.
        /// Subscriptions and their ends are told, once each.
        case subscriptionsAreTold
        /// A subscription to what does not offer it is `notSupported`.
        case unofferedSubscriptionsAreRefused
        /// What a peripheral sends as soon as it is told of a subscription arrives, however much, before the central knows too.
        case earlyValuesArrive
        /// Notifications arrive in order; false when the queue is full, then ready.
        case notificationsArriveInOrder
        /// Indications arrive in order, one at a time.
        case indicationsArriveInOrder
        /// A value above the limit is cut for its recipient.
        case longUpdatesAreCut
        /// Recipients that are not subscribed are passed over; unknown ones and characteristics throw.
        case wrongUpdatesThrow
        /// While a central has paused, updates are refused in the end, and none is lost.
        case pausedCentralsStopUpdates

        // Ending.
        /// A disconnection by the central is told to both sides with its reason, and requests throw afterwards.
        case centralsDisconnect
        /// The same by the peripheral.
        case peripheralsDisconnect
        /// A side that has ended a connection is told that as the reason, also where the other side ends it too or is out of reach.
        case theFirstReasonWins
        /// Withdrawn services are told, and their attributes not valid any more.
        case withdrawnServicesAreTold
        /// A service that is published while a central is connected is told, and found.
        case addedServicesAreTold
        /// Definitions that cannot be published are refused.
        case wrongDefinitionsAreRefused
        /// No event comes from within a call of the owner's, and none overlaps another of the same role.
        case eventsComeFromOutside
        /// Nothing that is asked of a connection that has ended has an effect on the next one of the same peers.
        case endedConnectionsAreInert
        /// Both sides say who the other is, by the same identity on the next connection, and a peripheral is found by it.
        case peersAreIdentified
        /// No event follows the closing of a role, and its calls throw.
        case closedRolesAreSilent
        /// What a closed role was asked is refused, and its waits for connections end with `roleClosed`.
        case closedRolesLeaveNobodyWaiting

        // L2CAP.
        /// A published channel opens and carries chunks both ways; others are refused.
        case channelsOpen
        /// When all dynamic PSMs are in use that is told, and one that is withdrawn can be given again.
        case usedUpPSMsAreTold
    }

    /// What an adapter is known, and documented, not to do.
    public struct Deviations: OptionSet, Sendable {
        /// The bits.
        public let rawValue: Int
        /// Makes a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// The transmit queue is never full, so nothing is refused and no ready signal comes.
        public static let neverFull = Deviations(rawValue: 1)
        /// A receiver cannot pause the other side.
        public static let cannotPause = Deviations(rawValue: 2)
        /// There are no L2CAP channels.
        public static let noChannels = Deviations(rawValue: 4)
        /// Scans cannot be filtered by signal strength.
        public static let noRSSIFilter = Deviations(rawValue: 8)
        /// Updates go to all subscribed centrals; who is connected is not known.
        public static let noRecipients = Deviations(rawValue: 16)
        /// Reads may be answered from a cache, so that requests do not all reach the owner.
        public static let cachesReads = Deviations(rawValue: 32)
        /// Values may be limited to less than ATT_MTU - 3 bytes.
        public static let shorterValues = Deviations(rawValue: 64)
        /// All writes to what takes writes without response come as such, and are answered before the owner knows.
        public static let writesAreCommands = Deviations(rawValue: 128)
        /// An answer with `valueNotAllowed` arrives as `unlikelyError`: there is no way to give some of the errors.
        public static let fewErrors = Deviations(rawValue: 256)
        /// A central is known by what it does: its connection begins with that and ends with its last subscription, and the
        /// peripheral cannot end it.
        public static let centralsBySubscription = Deviations(rawValue: 512)
    }

    let peripheral: any BluetoothAdapter
    let central: any BluetoothAdapter
    let deviations: Deviations
    let time: ConformanceTime
    let setInReach: (@Sendable (Bool) -> Void)?

    /// Checks two adapters that hear each other and are powered on.
    ///
    /// - Parameters:
    ///   - peripheral: the one that publishes.
    ///   - central: the one that connects.
    ///   - deviations: what the adapters are known not to do.
    ///   - time: the time that the checks wait by.
    ///   - setInReach: takes the two out of each other's reach (false) and back; nil where that cannot be done, so that what
    ///     needs it is not checked.
    public init(
        peripheral: any BluetoothAdapter, central: any BluetoothAdapter, deviations: Deviations = [],
        time: ConformanceTime, setInReach: (@Sendable (Bool) -> Void)? = nil
    ) {
        self.setInReach = setInReach
        self.peripheral = peripheral
        self.central = central
        self.deviations = deviations
        self.time = time
    }

    /// Runs all checks, one after another.
    ///
    /// - Throws: ``ConformanceFailure``, or a `BluetoothError` that the contract does not allow for.
    public func run() async throws {
        for requirement in Requirement.allCases { try await check(requirement) }
    }

    /// Runs one check.
    ///
    /// - Throws: ``ConformanceFailure``, or a `BluetoothError` that the contract does not allow for.
    public func check(_ requirement: Requirement) async throws {
        let rig = AdapterRig(self, requirement)
        do {
            try await rig.check(requirement)
        } catch {
            await rig.tearDown()
            throw error
        }
        await rig.tearDown()
        if let violation = rig.calls.violation { throw ConformanceFailure(requirement.rawValue, violation) }
    }
}
