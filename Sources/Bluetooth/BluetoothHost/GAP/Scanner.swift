/// Keeps the controller's scanning in step with the application's wish and the peers that are sought, as ``Advertiser`` does.
struct Scanner: Sendable {
    struct Request: Sendable, Equatable {
        let isActive: Bool
        /// The advertisers to report; empty for all.
        let peers: Set<Address>
    }

    /// What the application asked for; nil for no scan.
    var request: Request?
    var air = ScanState.off
    /// Whether the scan is to begin anew, with other parameters.
    var needsRestart = false
    var fragments = ReportFragments()

    /// A scan for sought peers alone is active.
    var parameters: Request { request ?? Request(isActive: true, peers: []) }

    mutating func controllerWasReset() {
        fragments = ReportFragments()
        air = .off
    }
}

/// What the controller does about scanning; whether by its filter accept list, and the first error of a series of commands.
enum ScanState: Sendable, Equatable {
    case off
    case starting(usesList: Bool, error: HCIErrorCode?)
    case on(usesList: Bool)
    case stopping(usesList: Bool)

    var isChanging: Bool {
        switch self {
        case .off, .on: false
        case .starting, .stopping: true
        }
    }

    var usesList: Bool {
        switch self {
        case .off: false
        case .starting(let usesList, _), .on(let usesList), .stopping(let usesList): usesList
        }
    }

    /// A command of the series has ended. Returns the error of a scan that did not start, with its last command.
    mutating func commandDidEnd(_ status: HCIErrorCode, isLast: Bool) -> HCIErrorCode? {
        switch self {
        case .starting(let usesList, let former):
            let error = former ?? (status == .success ? nil : status)
            guard isLast else {
                self = .starting(usesList: usesList, error: error)
                return nil
            }
            self = error == nil ? .on(usesList: usesList) : .off
            return error
        case .stopping:
            if isLast { self = .off }
            return nil
        case .off, .on: return nil
        }
    }
}

extension LEHost {
    /// Starts or stops to look for advertisements; with `isActive` scan responses are asked for. Starting again begins
    /// a new round of reports. The controller is asked to report each time it hears something.
    ///
    /// With `peers` only those are reported. The controller leaves out the others where its filter accept list has room and
    /// no attempt to connect goes by it; otherwise the host does.
    public mutating func scan(
        _ isWanted: Bool, isActive: Bool = true, peers: Set<Address> = [], at now: Int64
    ) {
        let request = Scanner.Request(isActive: isActive, peers: peers)
        scanner.needsRestart = isWanted && request != scanner.parameters
        scanner.request = isWanted ? request : nil
        reconcileScanning(at: now)
    }

    mutating func reconcileScanning(at now: Int64) {
        guard state == .ready, !scanner.air.isChanging else { return }
        let isWanted = (scanner.request != nil || !initiator.sought.isEmpty) && !privacy.isHeld
        let isOn = scanner.air != .off
        guard isWanted || isOn, isWanted != isOn || scanner.needsRestart else { return }
        let isExtended = controller.usesExtendedAdvertising
        let enable = isExtended ? Opcode.leSetExtendedScanEnable : .leSetScanEnable
        scanner.needsRestart = false
        if isOn {
            commands.enqueue(
                HCICommand(enable, for: .scanning(isLast: true)) { $0 += isExtended ? [0, 0, 0, 0, 0, 0] : [0, 0] },
                at: now)
            scanner.air = .stopping(usesList: scanner.air.usesList)
            return
        }
        let parameters = scanner.parameters
        let usesList =
            initiator.sought.isEmpty && !parameters.peers.isEmpty
            && parameters.peers.count <= controller.filterAcceptListSize && !initiator.usesList
        if usesList { fillFilterAcceptList(Array(parameters.peers), at: now) }
        let type: UInt8 = parameters.isActive ? 1 : 0
        let usesCodedPHY = usesCodedPHY
        let policy: UInt8 = usesList ? 1 : 0
        commands.enqueue(
            HCICommand(
                isExtended ? .leSetExtendedScanParameters : .leSetScanParameters, for: .scanning(isLast: false)
            ) {
                // Own address random; listening all the time, in windows of 60 ms, with two physical layers in turns.
                $0 += isExtended ? [0x01, policy, usesCodedPHY ? 0x05 : 0x01] : []
                for _ in 0..<(usesCodedPHY ? 2 : 1) {
                    $0.append(type)
                    $0.append(u16: usesCodedPHY ? 192 : 96)
                    $0.append(u16: 96)
                }
                if !isExtended { $0 += [0x01, policy] }
            }, at: now)
        commands.enqueue(
            HCICommand(enable, for: .scanning(isLast: true)) { $0 += isExtended ? [1, 0, 0, 0, 0, 0] : [1, 0] },
            at: now)
        scanner.air = .starting(usesList: usesList, error: nil)
    }

    mutating func scanCommandDidEnd(isLast: Bool, _ status: HCIErrorCode, at now: Int64) {
        guard scanner.air.isChanging else { return }
        if let error = scanner.air.commandDidEnd(status, isLast: isLast) {
            seekingDidFail(error)
            if scanner.request.take() != nil { pending.events.append(.scanFailed(error)) }
        }
        reconcileScanning(at: now)
    }
}

/// Advertising data that controllers report in pieces (Core Specification 5.4, Vol 4, Part E, 7.7.65.13): what does not fit an
/// event is marked "more data to come".
struct ReportFragments: Sendable {
    /// Data of one advertisement, at most, in octets (Vol 6, Part B, 2.3.4.9).
    static let dataLimit = 1650
    /// Advertisements that are being put together, at most; the oldest is given up first.
    static let limit = 16

    private var partial: [AdvertisingReport] = []

    /// Takes a report; returns the report that it completes, if any.
    mutating func join(_ report: AdvertisingReport) -> AdvertisingReport? {
        let place = partial.firstIndex {
            $0.address == report.address && $0.set == report.set && $0.isScanResponse == report.isScanResponse
        }
        guard report.isPartial || place != nil else { return report }
        var whole = report
        if let place { whole.data = Array((partial.remove(at: place).data + report.data).prefix(Self.dataLimit)) }
        guard report.isPartial else { return whole }
        partial.append(whole)
        if partial.count > Self.limit { partial.removeFirst() }
        return nil
    }
}
