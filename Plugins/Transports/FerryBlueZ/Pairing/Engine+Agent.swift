#if BlueZ
    import FerryBluetooth
    import Synchronization

    /// The agent that bluetoothd asks, and what it asks now.
    struct PairingAgentExport {
        struct Question {
            let call: BusMessage
            let task: Task<Void, Never>
            let timer: UInt64
        }

        static let path = "/ferry/agent"
        /// As long as bluetoothd itself waits for an agent.
        static let patience = Duration.seconds(60)

        let pairing: BlueZPairing
        /// Why bluetoothd does not take the agent.
        var refusal: BusError?
        var questions: [UInt64: Question] = [:]

        /// Without an agent, nothing can be shown or asked.
        var capability: BlueZPairing.Capability { pairing.agent == nil ? .noInputNoOutput : pairing.capability }
    }

    extension BusError {
        fileprivate static let rejected = BusError(
            name: "org.bluez.Error.Rejected", message: "Refused at this side")
        fileprivate static let canceled = BusError(
            name: "org.bluez.Error.Canceled", message: "The user did not answer in time")
    }

    // The agent's side of org.bluez.AgentManager1 and Agent1.
    extension BlueZEngine {
        func setPairing(_ pairing: BlueZPairing?) { agent = pairing.map { PairingAgentExport(pairing: $0) } }

        /// Makes the agent known to a bluetoothd that has just come.
        func registerAgent() async {
            guard let agent else { return }
            cancelQuestions()
            exports[PairingAgentExport.path] = .agent
            let manager = "org.bluez.AgentManager1"
            do throws(BusError) {
                let path = BusValue.path(PairingAgentExport.path)
                _ = try await call("/org/bluez", manager, "RegisterAgent", [path, .string(agent.capability.rawValue)])
                if agent.pairing.isDefault { _ = try await call("/org/bluez", manager, "RequestDefaultAgent", [path]) }
                self.agent?.refusal = nil
            } catch {
                self.agent?.refusal = error
            }
        }

        // MARK: What bluetoothd asks

        /// Answers a call to the agent, at once or when its person has.
        func answerAgent(_ call: BusMessage, _ arguments: [BusValue]) -> Bool {
            guard call.interface == "org.bluez.Agent1", let agent else { return false }
            let person = agent.pairing.agent
            let peer = shared.withLock { $0.peer(arguments.first?.text ?? "/") }
            switch call.member {
            case "Release":
                cancelQuestions()
                bus?.reply(to: call, [])
            case "Cancel":
                cancelQuestions()
                bus?.reply(to: call, [])
            case "DisplayPasskey":
                // It comes again for each digit that is entered on the other device.
                if arguments.last?.number == 0, arguments.count == 3, let number = arguments[1].number {
                    person?.show(number, for: peer)
                }
                bus?.reply(to: call, [])
            case "RequestConfirmation":
                guard let number = arguments.last?.number, let person else { return refuse(call) }
                ask(call) { await person.compare(number, with: peer) ? [] : nil }
            case "RequestPasskey":
                guard let person else { return refuse(call) }
                ask(call) {
                    let number = await person.passkey(of: peer)
                    return number.flatMap { (0...999_999).contains($0) ? [.uint32(UInt32($0))] : nil }
                }
            case "RequestAuthorization": ask(call) { await person?.allowsPairing(with: peer) ?? true ? [] : nil }
            case "AuthorizeService":
                guard let person, let text = arguments.last?.text, let service = try? BluetoothUUID(text) else {
                    return refuse(call)
                }
                ask(call) { await person.allowsService(service, for: peer) ? [] : nil }
            // The codes of BR/EDR's pairing before 2.1 are none of an LE adapter's.
            case "RequestPinCode", "DisplayPinCode": return refuse(call)
            default: return false
            }
            return true
        }

        private func refuse(_ call: BusMessage) -> Bool {
            bus?.fail(call, .rejected)
            return true
        }

        /// Asks outside of the bus's thread, which a person is not to hold up.
        private func ask(_ call: BusMessage, _ question: @escaping @Sendable () async -> [BusValue]?) {
            let id = shared.withLock { $0.makeID() }
            let task = Task.detached { [weak self] in
                let answer = await question()
                self?.perform { $0.answered(id, answer.map { .success($0) } ?? .failure(.rejected)) }
            }
            let timer = thread.schedule(after: PairingAgentExport.patience) { [weak self] in
                self?.assumeIsolated { $0.answered(id, .failure(.canceled)) }
            }
            agent?.questions[id] = .init(call: call, task: task, timer: timer)
        }

        private func answered(_ id: UInt64, _ answer: Result<[BusValue], BusError>) {
            guard let question = agent?.questions.removeValue(forKey: id) else { return }
            question.task.cancel()
            thread.cancel(question.timer)
            switch answer {
            case .success(let values): bus?.reply(to: question.call, values)
            case .failure(let error): bus?.fail(question.call, error)
            }
        }

        /// bluetoothd does not want answers any more.
        private func cancelQuestions() {
            for id in agent?.questions.keys.sorted() ?? [] { answered(id, .failure(.canceled)) }
        }
    }
#endif
