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

    /// Cuts neither: data that is too long is refused by ``LEHost/advertise(_:at:)``.
    public init(data: [UInt8], scanResponse: [UInt8] = []) {
        self.data = data
        self.scanResponse = scanResponse
    }
}

/// Keeps the controller's advertising in step with the application's wish. Changes are one series of commands at a time, so a
/// wish that changes often cannot pile commands up.
struct Advertiser: Sendable {
    var wish = AdvertisingWish.none
    var air = AdvertisingState.off
    /// Whether the controller's advertising set is one of extended packets; nil for none.
    var isSetExtended: Bool?
    var generation: UInt32 = 0

    mutating func controllerWasReset() {
        air = .off
        wish.resume()
        isSetExtended = nil
        generation &+= 1
    }
}

/// The advertisement that the application asked for last.
enum AdvertisingWish: Sendable, Equatable {
    case none
    /// The application has not been told of its start.
    case starting(AdvertisingPayload)
    case started(AdvertisingPayload)
    /// A full controller would not go on advertising beside its connections: tried again when one ends.
    case paused(AdvertisingPayload)

    var payload: AdvertisingPayload? {
        switch self {
        case .none: nil
        case .starting(let payload), .started(let payload), .paused(let payload): payload
        }
    }

    /// A payload is on the air. Returns whether the application is told: once for each wish.
    mutating func didStart(_ payload: AdvertisingPayload) -> Bool {
        guard self == .starting(payload) else { return false }
        self = .started(payload)
        return true
    }

    /// A payload could not be put on the air. Returns whether the application is told: not of one that it no longer wants, nor
    /// of one that has been on the air and can wait for a connection's end.
    mutating func didFail(_ payload: AdvertisingPayload, besideConnections: Bool) -> Bool {
        switch self {
        case .started(payload) where besideConnections:
            self = .paused(payload)
            return false
        case .starting(payload), .started(payload):
            self = .none
            return true
        case .none, .starting, .started, .paused: return false
        }
    }

    /// The controller may have room again.
    mutating func resume() { if case .paused(let payload) = self { self = .started(payload) } }
}

/// What the controller advertises.
enum AdvertisingState: Sendable, Equatable {
    case off
    case on(AdvertisingPayload)
    /// A series of commands runs, and has met this first error.
    case changing(to: AdvertisingPayload?, error: HCIErrorCode?)

    var isChanging: Bool { if case .changing = self { true } else { false } }
    var payload: AdvertisingPayload? { if case .on(let payload) = self { payload } else { nil } }

    /// A command of the series has ended. Returns the outcome of the series with its last one.
    mutating func commandDidEnd(
        _ status: HCIErrorCode, isLast: Bool
    ) -> (payload: AdvertisingPayload?, error: HCIErrorCode?)? {
        guard case .changing(let payload, let former) = self else { return nil }
        let error = former ?? (status == .success ? nil : status)
        guard isLast else {
            self = .changing(to: payload, error: error)
            return nil
        }
        self = if let payload, error == nil { .on(payload) } else { .off }
        return (payload, error)
    }

    /// A central's connection ends the advertising that it came from (Vol 4, Part E, 7.8.9, 7.8.56).
    mutating func centralDidConnect() { if case .on = self { self = .off } }
}

extension LEHost {
    /// Advertises `payload` in place of the payload before it; nil stops.
    /// ``HostEvent/advertisingStarted`` or ``HostEvent/advertisingFailed(_:)`` follows when something is to be on the
    /// air. It goes on when a central connects, as far as the controller can do both.
    ///
    /// - Returns: false when it is too long; nothing has changed then.
    public mutating func advertise(_ payload: AdvertisingPayload?, at now: Int64) -> Bool {
        if let payload, !payload.isWithinLimits { return false }
        advertiser.wish = payload.map { .starting($0) } ?? .none
        if let current = advertiser.air.payload, advertiser.wish.didStart(current) {
            pending.events.append(.advertisingStarted)
        }
        reconcileAdvertising(at: now)
        return true
    }

    mutating func reconcileAdvertising(at now: Int64) {
        guard state == .ready, !advertiser.air.isChanging else { return }
        if case .paused = advertiser.wish { return }
        let wanted = privacy.isHeld ? nil : advertiser.wish.payload
        guard wanted != advertiser.air.payload else { return }
        guard wanted?.isExtended != true || controller.usesExtendedAdvertising else {
            advertiser.wish = .none
            pending.events.append(.advertisingFailed(.unsupportedFeature))
            return reconcileAdvertising(at: now)
        }
        advertiser.generation &+= 1
        if case .on = advertiser.air {
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
        advertiser.air = .changing(to: wanted, error: nil)
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
        guard generation == advertiser.generation,
            let outcome = advertiser.air.commandDidEnd(status, isLast: isLast)
        else { return }
        switch outcome {
        case (nil, _): break
        case (let payload?, nil):
            privacy.former = nil
            if advertiser.wish.didStart(payload) { pending.events.append(.advertisingStarted) }
        case (let payload?, let error?):
            if advertiser.wish.didFail(payload, besideConnections: !connections.isEmpty) {
                pending.events.append(.advertisingFailed(error))
            }
        }
        reconcileAdvertising(at: now)
    }
}
