import DequeModule

/// What to advertise: advertising data and scan response as they go on the air.
public struct AdvertisingPayload: Sendable, Hashable {
    /// Advertising data.
    public var data: [UInt8]
    /// Scan response data.
    public var scanResponse: [UInt8]
    /// The range of intervals, in units of 0.625 ms. Default 30 to 60 ms, GAP's fast range
    /// (Core Specification 5.4, Vol 3, Part C, Appendix A).
    public var interval: ClosedRange<UInt16> = 48...96
    /// Whether centrals may connect. Without that, scan responses are given where there is one, for beacons.
    public var isConnectable = true

    /// Whether the packets are those of extended advertising: up to 245 bytes and no scan response (Core Specification 5.4,
    /// Vol 6, Part B, 2.3.4). Scanners from before Bluetooth 5 do not hear them.
    public var isExtended = false

    /// Whether it is short enough: 31 bytes each for what every scanner hears.
    var isWithinLimits: Bool {
        isExtended ? data.count <= 245 && scanResponse.isEmpty : data.count <= 31 && scanResponse.count <= 31
    }

    /// Cuts neither: what is too long is refused by ``LEHost/advertise(_:at:)``.
    public init(data: [UInt8], scanResponse: [UInt8] = []) {
        self.data = data
        self.scanResponse = scanResponse
    }
}

/// Keeps what is on the air in step with what is wanted. Changes are one series of commands at a time, so a wish that
/// changes often cannot pile commands up.
struct Advertiser: Sendable {
    var wanted: AdvertisingPayload?
    var applied: AdvertisingPayload?
    /// What the series under way is to bring about, and the first error it met.
    var changing: (payload: AdvertisingPayload?, error: HCIErrorCode?)?
    /// A full controller would not go on advertising beside its connections: tried again when one ends.
    var isPaused = false
    var hasStarted = false
    /// Whether the controller's advertising set is one of extended packets; nil for none.
    var isSetExtended: Bool?
    var generation: UInt32 = 0

    mutating func controllerWasReset() {
        applied = nil
        changing = nil
        isPaused = false
        isSetExtended = nil
        generation &+= 1
    }
}

/// The same for scanning.
struct Scanner: Sendable {
    var isWanted = false
    var isActive = true
    /// Whom to listen to; empty for everyone.
    var peers: Set<Address> = []
    var isOn = false
    /// Whether the scan goes by the controller's filter accept list.
    var usesList = false
    /// Whether the series under way ends with the scan on, and the first error it met.
    var changing: (isOn: Bool, error: HCIErrorCode?)?
    var needsRestart = false
    var fragments = ReportFragments()

    mutating func controllerWasReset() {
        fragments = ReportFragments()
        isOn = false
        usesList = false
        changing = nil
    }
}

// MARK: - Advertising

extension LEHost {
    /// Advertises `payload` in place of what was advertised before; nil stops.
    /// ``HostEvent/advertisingStarted`` or ``HostEvent/advertisingFailed(_:)`` follows when something is to be on the
    /// air. It goes on when a central connects, as far as the controller can do both.
    ///
    /// - Returns: false when it is too long; nothing has changed then.
    public mutating func advertise(_ payload: AdvertisingPayload?, at now: Int64) -> Bool {
        if let payload, !payload.isWithinLimits { return false }
        advertiser.wanted = payload
        advertiser.isPaused = false
        advertiser.hasStarted = false
        if payload != nil, payload == advertiser.applied, advertiser.changing == nil {
            advertiser.hasStarted = true
            pending.events.append(.advertisingStarted)
        }
        reconcileAdvertising(at: now)
        return true
    }

    mutating func reconcileAdvertising(at now: Int64) {
        guard state == .ready, advertiser.changing == nil, !advertiser.isPaused else { return }
        let wanted = privacy.isHeld ? nil : advertiser.wanted
        guard wanted != advertiser.applied else { return }
        guard wanted?.isExtended != true || controller.usesExtendedAdvertising else {
            advertiser.wanted = nil
            pending.events.append(.advertisingFailed(.unsupportedFeature))
            return reconcileAdvertising(at: now)
        }
        advertiser.generation &+= 1
        if advertiser.applied != nil {
            let stop =
                controller.usesExtendedAdvertising ? Opcode.leSetExtendedAdvertisingEnable : .leSetAdvertisingEnable
            let isLast = wanted == nil
            commands.enqueue(
                HCICommand(
                    stop,
                    for: isLast
                        ? .advertising(generation: advertiser.generation, isLast: true) : .stopAdvertising
                ) { $0 += controller.usesExtendedAdvertising ? [0, 1, 0, 0, 0, 0] : [0] }, at: now)
        }
        if let wanted {
            if controller.usesExtendedAdvertising {
                enqueueExtendedAdvertising(wanted, at: now)
            } else {
                enqueueLegacyAdvertising(wanted, at: now)
            }
        }
        advertiser.applied = nil
        advertiser.changing = (wanted, nil)
    }

    private mutating func enqueueAdvertising(
        _ opcode: Opcode, isLast: Bool = false, at now: Int64, _ build: (inout [UInt8]) -> Void
    ) {
        let purpose = CommandPurpose.advertising(generation: advertiser.generation, isLast: isLast)
        commands.enqueue(HCICommand(opcode, for: purpose, build), at: now)
    }

    private mutating func enqueueLegacyAdvertising(_ payload: AdvertisingPayload, at now: Int64) {
        enqueueAdvertising(.leSetAdvertisingParameters, at: now) {
            $0.append(u16: payload.interval.lowerBound)
            $0.append(u16: payload.interval.upperBound)
            // Connectable, scannable or neither, undirected; own address random; peer address unused.
            $0 += [payload.isConnectable ? 0 : payload.scanResponse.isEmpty ? 3 : 2, 0x01, 0x00]
            $0 += [UInt8](repeating: 0, count: 6)
            $0 += [0x07, 0x00]  // all channels, no filter
        }
        for (opcode, data) in [
            (Opcode.leSetAdvertisingData, payload.data), (.leSetScanResponseData, payload.scanResponse),
        ] {
            enqueueAdvertising(opcode, at: now) {
                $0.append(UInt8(data.count))
                $0 += data + [UInt8](repeating: 0, count: 31 - data.count)
            }
        }
        enqueueAdvertising(.leSetAdvertisingEnable, isLast: true, at: now) { $0.append(1) }
    }

    /// One advertising set, with the PDUs of legacy advertising, which every scanner hears, unless the payload says otherwise.
    private mutating func enqueueExtendedAdvertising(_ payload: AdvertisingPayload, at now: Int64) {
        // A set that holds data of the other kind is refused (Vol 4, Part E, 7.8.53).
        if let isExtended = advertiser.isSetExtended, isExtended != payload.isExtended,
            controller.supports(.leRemoveAdvertisingSet)
        {
            commands.enqueue(HCICommand(.leRemoveAdvertisingSet, for: .stopAdvertising) { $0.append(0) }, at: now)
        }
        advertiser.isSetExtended = payload.isExtended
        enqueueAdvertising(.leSetExtendedAdvertisingParameters, at: now) {
            $0.append(0)
            // Legacy PDUs: connectable and scannable, scannable, or neither. Extended ones cannot be both.
            let legacy: UInt16 = payload.isConnectable ? 0x0013 : payload.scanResponse.isEmpty ? 0x0010 : 0x0012
            $0.append(u16: payload.isExtended ? (payload.isConnectable ? 0x0001 : 0x0000) : legacy)
            for bound in [payload.interval.lowerBound, payload.interval.upperBound] {
                $0.append(u16: bound)
                $0.append(0)
            }
            $0 += [0x07, 0x01, 0x00]  // all channels; own address random; peer address unused
            $0 += [UInt8](repeating: 0, count: 6)
            $0 += [0x00, 0x7F, 0x01, 0x00, 0x01, 0x00, 0x00]  // no filter, power as it likes, LE 1M, set 0, no requests
        }
        let address = privacy.address.bytes
        enqueueAdvertising(.leSetAdvertisingSetRandomAddress, at: now) { $0 += [0] + address }
        let hasResponse = !payload.isExtended && (payload.isConnectable || !payload.scanResponse.isEmpty)
        for (opcode, data) in [
            (Opcode.leSetExtendedAdvertisingData, payload.data),
            (.leSetExtendedScanResponseData, payload.scanResponse),
        ] where hasResponse || opcode == .leSetExtendedAdvertisingData {
            enqueueAdvertising(opcode, at: now) { $0 += [0, 0x03, 0x01, UInt8(data.count)] + data }
        }
        enqueueAdvertising(.leSetExtendedAdvertisingEnable, isLast: true, at: now) { $0 += [1, 1, 0, 0, 0, 0] }
    }

    mutating func advertisingCommandDidEnd(
        generation: UInt32, isLast: Bool, _ status: HCIErrorCode, at now: Int64
    ) {
        guard generation == advertiser.generation, let series = advertiser.changing else { return }
        let error = series.error ?? (status == .success ? nil : status)
        advertiser.changing = (series.payload, error)
        guard isLast else { return }
        advertiser.changing = nil
        if let payload = series.payload {
            if let error {
                advertisingDidFail(error, of: payload)
            } else {
                advertiser.applied = payload
                privacy.former = nil
                if payload == advertiser.wanted, !advertiser.hasStarted {
                    advertiser.hasStarted = true
                    pending.events.append(.advertisingStarted)
                }
            }
        }
        reconcileAdvertising(at: now)
    }

    private mutating func advertisingDidFail(_ error: HCIErrorCode, of payload: AdvertisingPayload) {
        guard payload == advertiser.wanted else { return }
        if advertiser.hasStarted, !connections.isEmpty {
            advertiser.isPaused = true
        } else {
            advertiser.wanted = nil
            pending.events.append(.advertisingFailed(error))
        }
    }
}

// MARK: - Scanning

extension LEHost {
    /// Starts or stops to look for advertisements; with `isActive` scan responses are asked for. Starting again begins
    /// a new round of reports. The controller is asked to report each time it hears something.
    ///
    /// With `peers` only those are reported. The controller leaves out the others where its filter accept list has room and
    /// no attempt to connect goes by it; otherwise the host does.
    public mutating func scan(
        _ isWanted: Bool, isActive: Bool = true, peers: Set<Address> = [], at now: Int64
    ) {
        scanner.isWanted = isWanted
        scanner.needsRestart = isWanted && (isActive != scanner.isActive || peers != scanner.peers)
        scanner.isActive = isActive
        scanner.peers = peers
        reconcileScanning(at: now)
    }

    mutating func reconcileScanning(at now: Int64) {
        guard state == .ready, scanner.changing == nil else { return }
        let isWanted = (scanner.isWanted || !initiator.sought.isEmpty) && !privacy.isHeld
        guard isWanted || scanner.isOn, isWanted != scanner.isOn || scanner.needsRestart else { return }
        let isExtended = controller.usesExtendedAdvertising
        let enable = isExtended ? Opcode.leSetExtendedScanEnable : .leSetScanEnable
        if scanner.isOn {
            commands.enqueue(
                HCICommand(enable, for: .scanning(isLast: true)) { $0 += isExtended ? [0, 0, 0, 0, 0, 0] : [0, 0] },
                at: now)
            scanner.changing = (false, nil)
            scanner.needsRestart = false
            return
        }
        scanner.usesList =
            initiator.sought.isEmpty && !scanner.peers.isEmpty
            && scanner.peers.count <= controller.filterAcceptListSize && !initiator.usesList
        if scanner.usesList { fillFilterAcceptList(Array(scanner.peers), at: now) }
        let type: UInt8 = scanner.isActive ? 1 : 0
        let usesCodedPHY = usesCodedPHY
        let policy: UInt8 = scanner.usesList ? 1 : 0
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
        scanner.changing = (true, nil)
        scanner.needsRestart = false
    }

    mutating func scanCommandDidEnd(isLast: Bool, _ status: HCIErrorCode, at now: Int64) {
        guard let series = scanner.changing else { return }
        let error = series.error ?? (status == .success ? nil : status)
        scanner.changing = (series.isOn, error)
        guard isLast else { return }
        scanner.changing = nil
        scanner.isOn = series.isOn && error == nil
        if !scanner.isOn { scanner.usesList = false }
        if let error, series.isOn {
            seekingDidFail(error)
            if scanner.isWanted {
                scanner.isWanted = false
                pending.events.append(.scanFailed(error))
            }
        }
        reconcileScanning(at: now)
    }
}
