extension LEHost {
    /// Sets up the controller. ``HostEvent/stateChanged(_:)`` tells when the host can be used.
    public mutating func start(at now: Int64) {
        restarts = 0
        begin(at: now)
    }

    /// Tells the host that the controller can no longer be reached: every connection is lost.
    public mutating func controllerWasLost(_ why: String, at now: Int64) {
        dropEverything(at: now)
        changeState(.failed(why))
    }

    private mutating func begin(at now: Int64) {
        commands.reset()
        controller = ControllerInfo()
        changeState(.starting)
        enqueue(.reset, at: now)
    }

    private mutating func changeState(_ new: HostState) {
        guard state != new else { return }
        state = new
        pending.events.append(.stateChanged(new))
    }

    /// Begins again after the controller failed; a second failure before it was ready is final.
    mutating func restart(_ why: String, at now: Int64) {
        dropEverything(at: now)
        pending.events.append(.diagnostic(why))
        restarts += 1
        guard restarts <= 2 else {
            changeState(.failed(why + " Resetting it did not help: check the channel to it, then start again."))
            return
        }
        begin(at: now)
    }

    private mutating func dropEverything(at now: Int64) {
        for handle in connections.map(\.handle) { connectionDidEnd(handle, .unspecified, at: now) }
        commands.reset()
        freeBuffers = 0
        advertiser.controllerWasReset()
        scanner.controllerWasReset()
        initiator.controllerWasReset()
        privacy.controllerWasReset()
    }

    private mutating func enqueue(_ step: BringUpStep, at now: Int64) {
        commands.enqueue(step.command(for: controller, randomAddress: privacy.address), at: now)
    }

    /// A command's result has arrived.
    mutating func commandDidEnd(
        _ command: HCICommand, _ status: HCIErrorCode, _ parameters: [UInt8], at now: Int64
    ) {
        switch command.purpose {
        case .bringUp(let step): stepDidEnd(step, status, parameters, at: now)
        case .advertising(let generation, let isLast):
            advertisingCommandDidEnd(generation: generation, isLast: isLast, status, at: now)
        case .stopAdvertising: break
        case .scanning(let isLast): scanCommandDidEnd(isLast: isLast, status, at: now)
        case .filterAcceptList: if status != .success { filterAcceptListDidFail(status, at: now) }
        case .privateAddress, .resolvingList: privacyCommandDidEnd(command.purpose, status, at: now)
        case .connect: if status != .success { connectCommandDidFail(status, at: now) }
        case .cancelConnect: if status != .success { cancelCommandDidFail(at: now) }
        case .disconnect(let handle):
            // The connection went away while the command was under way; its event has come or is coming.
            if status != .success, status != .unknownConnection, let index = index(handle: handle) {
                pending.events.append(
                    .diagnostic("The controller will not disconnect \(connections[index].peer): \(status)."))
            }
        case .readRSSI(let handle):
            guard let index = index(handle: handle) else { return }
            let value = status == .success && parameters.count >= 3 ? Int8(bitPattern: parameters[2]) : nil
            pending.events.append(.rssi(connections[index].id, value == 127 ? nil : value))
        case .connectionUpdate(let handle):
            if status != .success {
                pending.events.append(
                    .diagnostic("The parameters of connection \(handle) stay as they are: \(status)."))
            }
        case .encrypt(let handle): if status != .success { encryptCommandDidFail(handle, status, at: now) }
        case .reply, .tuning: break
        }
    }

    /// The controller does not answer a command that it says it knows: the command is done without from now on.
    mutating func optionalCommandDidFail(_ command: HCICommand, at now: Int64) {
        pending.events.append(
            .diagnostic(
                "The controller did not answer \(command.opcode) within \(CommandQueue.timeout / 1_000_000_000) s; it is done "
                    + "without."))
        controller.doWithout(command.opcode)
        commandDidEnd(command, .unknownCommand, [], at: now)
    }

    private mutating func stepDidEnd(
        _ step: BringUpStep, _ status: HCIErrorCode, _ parameters: [UInt8], at now: Int64
    ) {
        guard state == .starting else { return }
        do throws(MalformedPacket) {
            if status == .success {
                // All of an answer or nothing.
                var told = controller
                try step.read(parameters, into: &told)
                controller = told
            } else if step.isRequired {
                changeState(.failed("The controller refuses the step \(step) of its bring-up: \(status)."))
                return
            }
        } catch {
            let why = "The controller's answer to the step \(step) of its bring-up is too short"
            guard !step.isRequired else { return changeState(.failed(why + ".")) }
            pending.events.append(.diagnostic(why + "; it is done without, as if the controller had refused."))
        }
        let next = BringUpStep.allCases.first { $0.rawValue > step.rawValue && $0.applies(to: controller) }
        if let next {
            enqueue(next, at: now)
            return
        }
        guard controller.aclPacketLength >= 27, controller.aclPacketCount > 0 else {
            changeState(
                .failed(
                    "The controller offers \(controller.aclPacketCount) buffers of \(controller.aclPacketLength) bytes "
                        + "for LE data; at least one of 27 is needed."))
            return
        }
        freeBuffers = controller.aclPacketCount
        restarts = 0
        changeState(.ready)
        beginRotation(at: now)
        changeAddresses(at: now)
    }
}
