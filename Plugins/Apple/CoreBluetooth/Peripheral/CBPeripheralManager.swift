public import Dispatch
public import FerryBluetooth
public import Foundation

/// Publishes services, advertises them, and updates subscribers.
///
/// The callbacks come one at a time on the queue that was given. The object may be used from any thread.
open class CBPeripheralManager: CBManager {
    private struct WeakDelegate { weak var delegate: (any CBPeripheralManagerDelegate)? }
    private let delegateReference: Guarded<WeakDelegate>
    private let events: PeripheralEvents
    let role: any PeripheralRole
    let quirks: CBQuirks
    let centrals = WeakTable<PeerID, CBCentral>()
    let progress = Guarded(PeripheralProgress())
    let withdrawal = NSLock()
    private let tasks = SerialTasks()

    /// A manager without a delegate, on the main queue.
    public override convenience init() { self.init(delegate: nil, queue: nil, options: nil) }

    /// A manager on the process's adapter (see ``CBAdapters``).
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly.
    ///   - queue: where callbacks come; nil for the main queue.
    public convenience init(delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// A manager on the process's adapter (see ``CBAdapters``).
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly. The first update waits for one, a second at most.
    ///   - queue: where callbacks come; nil for the main queue.
    ///   - options: ``CBPeripheralManagerOptionRestoreIdentifierKey``; the others are ignored.
    public init(
        delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
    ) {
        let callbacks = Callbacks(queue)
        let setup = ManagerSetup(options)
        delegateReference = Guarded(WeakDelegate(delegate: delegate))
        events = PeripheralEvents(callbacks)
        quirks = setup.quirks
        role = setup.adapter.openPeripheral(events)
        super.init()
        self.callbacks = callbacks
        events.role.current = role
        events.manager.object = self
        restore(options?[CBPeripheralManagerOptionRestoreIdentifierKey] as? String)
        callbacks.start()
    }

    /// A manager on an adapter of the program's choice. Not part of Apple's API.
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly.
    ///   - queue: where callbacks come; nil for the main queue.
    ///   - options: as with Apple's initializer.
    ///   - adapter: what stands behind the manager.
    ///   - quirks: what it shows; nil for ``CBAdapters/quirks``.
    public convenience init(
        delegate: (any CBPeripheralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil,
        adapter: any BluetoothAdapter, quirks: CBQuirks? = nil
    ) {
        self.init(delegate: delegate, queue: queue, options: ManagerSetup.options(options, adapter, quirks))
    }

    deinit { role.close() }

    /// Who is told of what happens; held weakly.
    open var delegate: (any CBPeripheralManagerDelegate)? {
        get { delegateReference { $0.delegate } }
        set {
            delegateReference { $0.delegate = newValue }
            if newValue != nil { delegateDidCome { [weak self] in self?.adapterDidChange($0) } }
        }
    }

    /// Whether it advertises.
    open var isAdvertising: Bool { progress { $0.isAdvertising } }

    /// Whether people have allowed it: `authorized` on Linux.
    @available(*, deprecated, message: "Use CBManager.authorization")
    open class func authorizationStatus() -> CBPeripheralManagerAuthorizationStatus { .authorized }

    // MARK: Advertising

    /// Advertises a local name and services: 28 bytes in the first packet, 10 more for the name in the scan response,
    /// services that do not fit in the overflow area where the adapter has one.
    ///
    /// - Parameter advertisementData: ``CBAdvertisementDataLocalNameKey`` and ``CBAdvertisementDataServiceUUIDsKey``;
    ///   other keys are ignored.
    open func startAdvertising(_ advertisementData: [String: Any]?) {
        guard requirePower() else { return }
        let advertisement = Advertisement(
            localName: quirks.contains(.namelessAdvertising)
                ? nil : advertisementData?[CBAdvertisementDataLocalNameKey] as? String,
            services: (advertisementData?[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID])?.map(\.bluetooth) ?? [])
        let allowed = [CBAdvertisementDataLocalNameKey, CBAdvertisementDataServiceUUIDsKey]
        for key in advertisementData?.keys.filter({ !allowed.contains($0) }).sorted() ?? [] {
            Misuse.report("startAdvertising: the advertisement key \(key) is not allowed and is ignored")
        }
        let attempt: Int? = progress { progress in
            guard progress.advertisement == nil else { return nil }
            progress.advertisement = advertisement
            progress.attempt += 1
            return progress.attempt
        }
        guard let attempt else {
            return tell {
                $0.delegate?.peripheralManagerDidStartAdvertising(
                    $0, error: CBError(.alreadyAdvertising, "Advertising has already started."))
            }
        }
        saveState()
        perform { (role) async throws(BluetoothError) in
            _ = try await role.startAdvertising(advertisement)
        } then: { manager, result in
            let isWanted = manager.progress { progress in
                guard progress.attempt == attempt, progress.advertisement != nil else { return false }
                if case .success = result { progress.isAdvertising = true } else { progress.advertisement = nil }
                return true
            }
            // It was stopped meanwhile, after which the adapter may have started.
            if !isWanted, manager.progress({ $0.advertisement == nil }) { manager.role.stopAdvertising() }
            manager.saveState()
            manager.delegate?.peripheralManagerDidStartAdvertising(manager, error: result.error)
        }
    }

    /// Stops advertising. Connections go on.
    open func stopAdvertising() {
        guard requirePower() else { return }
        progress {
            $0.advertisement = nil
            $0.isAdvertising = false
        }
        role.stopAdvertising()
        saveState()
    }

    /// Asks for quicker or slower connections: ignored, because adapters have no such setting.
    open func setDesiredConnectionLatency(_ latency: CBPeripheralManagerConnectionLatency, for central: CBCentral) {}

    // MARK: Services

    /// Publishes a service, which is fixed from then on. Services that it includes are to be added first.
    open func add(_ service: CBMutableService) {
        guard requirePower() else { return }
        let definition: ServiceDefinition
        do throws(CBError) { definition = try service.definition(on: self) } catch {
            Misuse.report("add: \(error.reason)")
            return tell { [error] in $0.delegate?.peripheralManager($0, didAdd: service, error: error) }
        }
        let isFirst = service.publication { publication in
            defer { publication.isFrozen = true }
            return !publication.isFrozen
        }
        guard isFirst else {
            return Misuse.report("add: the service \(service.uuid) has been added already")
        }
        let powerLosses = progress { progress in
            progress.services.append(service)
            progress.publishing += 1
            return progress.powerLosses
        }
        for case let characteristic as CBMutableCharacteristic in service.characteristics ?? [] {
            characteristic.publication {
                $0.isFrozen = true
                $0.manager = self
            }
        }
        saveState()
        perform { [weak self] (role) async throws(BluetoothError) in
            let result: Result<PublishedService, BluetoothError>
            do throws(BluetoothError) { result = .success(try await role.publish(definition)) } catch {
                result = .failure(error)
            }
            self?.register(service, try? result.get())
            let published = try result.get()
            guard self?.progress({ $0.powerLosses }) == powerLosses else {
                _ = self?.withdraw(service)
                role.unpublish(published.id)
                throw BluetoothError(.notPoweredOn, "the power went while the service was published; add it again")
            }
        } then: { manager, result in
            manager.delegate?.peripheralManager(manager, didAdd: service, error: result.error)
        }
    }

    /// Withdraws a service. One that was not added is ignored.
    open func remove(_ service: CBMutableService) {
        guard requirePower() else { return }
        // After earlier requests, so that it also withdraws a service whose publication is pending.
        perform { [weak self] (role) async throws(BluetoothError) in
            if let id = self?.withdraw(service) { role.unpublish(id) }
        } then: { manager, _ in
            manager.saveState()
        }
    }

    /// Withdraws all services.
    open func removeAllServices() {
        guard requirePower() else { return }
        for service in progress({ $0.services }) { remove(service) }
    }

    // MARK: Values

    /// Answers a request, or with the first of several all of them. Each is answered once; further answers are ignored.
    open func respond(to request: CBATTRequest, withResult result: CBATTError.Code) {
        guard requirePower(), let answer = request.answer else { return }
        let response: Result<[UInt8], ATTError> =
            result == .success
            ? .success(answer.isRead ? [UInt8](request.value ?? Data()) : [])
            : .failure(ATTError(rawValue: UInt8(truncatingIfNeeded: result.rawValue)))
        guard answer.give(response) else { return Misuse.report("respond: the request has been answered already") }
    }

    /// Sends a value to subscribers, cut to each one's ``CBCentral/maximumUpdateValueLength``.
    ///
    /// - Parameters:
    ///   - value: at most 512 bytes reach anybody.
    ///   - characteristic: one whose service has been added.
    ///   - centrals: who is to receive it; nil for every subscriber. Those that are not subscribed are passed over.
    /// - Returns: false when the transmit queue is full; then
    ///   ``CBPeripheralManagerDelegate/peripheralManagerIsReady(toUpdateSubscribers:)`` follows. Also false, with
    ///   nothing to follow, when the characteristic is not published or the manager is not powered on.
    @discardableResult open func updateValue(
        _ value: Data, for characteristic: CBMutableCharacteristic, onSubscribedCentrals centrals: [CBCentral]?
    ) -> Bool {
        guard requirePower() else { return false }
        let publication = characteristic.publication.current
        guard publication.manager === self else {
            Misuse.report("updateValue: the characteristic \(characteristic.uuid) has not been added")
            return false
        }
        // Publishing; no central can be subscribed yet.
        guard let id = publication.id else { return true }
        let recipients: UpdateRecipients = centrals.map { .some($0.compactMap(\.connection)) } ?? .all
        do throws(BluetoothError) {
            guard quirks.contains(.lateATTMTU) else {
                return try role.tryUpdateValue(value, of: id, for: recipients)
            }
            let receivers = centrals ?? self.centrals.all
            let most = receivers.map(\.maximumUpdateValueLength).min() ?? value.count
            let isTaken = try role.tryUpdateValue(value.prefix(most), of: id, for: recipients)
            if isTaken { for receiver in receivers { receiver.countUpdate() } }
            return isTaken
        } catch {
            Misuse.report("updateValue: \(error.message)")
            return false
        }
    }

    // MARK: L2CAP channels

    /// Offers an L2CAP channel under a PSM of the adapter's setup.
    open func publishL2CAPChannel(withEncryption encryptionRequired: Bool) {
        guard requirePower() else { return }
        perform { (role) async throws(BluetoothError) in
            try await role.publishL2CAPChannel(encryptionRequired: encryptionRequired)
        } then: { manager, result in
            let number = (try? result.get())?.rawValue ?? 0
            if result.error == nil { manager.progress { _ = $0.channels.insert(number) } }
            manager.delegate?.peripheralManager(manager, didPublishL2CAPChannel: number, error: result.error)
        }
    }

    /// Withdraws an L2CAP channel; open ones go on.
    open func unpublishL2CAPChannel(_ PSM: CBL2CAPPSM) {
        guard requirePower() else { return }
        let isPublished = progress { $0.channels.remove(PSM) } != nil
        if isPublished { role.unpublishL2CAPChannel(FerryBluetooth.PSM(rawValue: PSM)) }
        tell {
            let error = isPublished ? nil : CBError(.invalidParameters, "The PSM \(PSM) is not published here.")
            $0.delegate?.peripheralManager($0, didUnpublishL2CAPChannel: PSM, error: error)
        }
    }

    // MARK: Order

    /// Carries out asynchronous work in the order of the calls, then hands the result over on the program's queue.
    private func perform<Value: Sendable>(
        _ work: @escaping (any PeripheralRole) async throws(BluetoothError) -> Value,
        then finish: @escaping (CBPeripheralManager, Result<Value, BluetoothError>) -> Void
    ) {
        tasks.add { [weak self, role] in
            let result: Result<Value, BluetoothError>
            do throws(BluetoothError) { result = .success(try await work(role)) } catch { result = .failure(error) }
            self?.tell { finish($0, result) }
        }
    }

    func tell(_ body: @escaping (CBPeripheralManager) -> Void) {
        callbacks.run { [weak self] in
            if let self { body(self) }
        }
    }
}

extension PeripheralRole {
    /// Lends a value's bytes, as `Data.bytes` does from the systems of 26 on.
    fileprivate func tryUpdateValue(
        _ value: Data, of characteristic: AttributeID, for recipients: UpdateRecipients
    ) throws(BluetoothError) -> Bool {
        let outcome = value.withUnsafeBytes { bytes -> Result<Bool, BluetoothError> in
            do throws(BluetoothError) {
                return .success(try tryUpdateValue(bytes.bytes, of: characteristic, for: recipients))
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }
}
