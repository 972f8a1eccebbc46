#if HCI
    import BluetoothHost
    import FerryBluetooth
    import NIOCore
    import Synchronization

    extension HCIEngine {
        func pair(with peer: PeerID) async throws(BluetoothError) {
            let waiter = Waiter<Void>()
            let isEncrypted = try change { state, now throws(BluetoothError) in
                guard let id = state.connection(peer) else {
                    throw BluetoothError(.notConnected, "\(peer) is not connected, so there is nothing to encrypt.")
                }
                if state.host.isEncrypted(id) == true { return true }
                guard state.host.secure(id, at: now) else {
                    throw BluetoothError(
                        .notSupported, "This adapter does not pair, or its controller cannot encrypt.")
                }
                state.securing[id, default: []].append(waiter)
                return false
            }
            if !isEncrypted { try await waiter.wait() }
        }

        func forget(_ peer: PeerID) throws(BluetoothError) {
            try change { state, _ in if let address = state.peers.key(of: peer) { state.host.forget(address) } }
            try saveBonds()
        }

        func security(of peer: PeerID) -> LinkSecurity? {
            state.withLock { state in state.connection(peer).flatMap { state.host.security(of: $0) } }
        }

        // MARK: On the event loop

        func didAsk(_ id: PairingQuestionID, _ connection: ConnectionID, _ question: PairingQuestion) {
            guard let agent = pairing?.agent, let peer = state.withLock({ $0.links[connection]?.peer }) else { return }
            switch question {
            case .allow(let proposal):
                guard proposal.replaced == nil || pairing?.replacesKeys == true else {
                    return answer(id, .allow(false))
                }
                ask(id, connection) { .allow(await agent.allowsPairing(with: peer)) }
            case .show(let number): agent.show(Int(number), for: peer)
            case .compare(let number):
                ask(id, connection) { .confirm(await agent.compare(Int(number), with: peer)) }
            case .enterPasskey:
                // A number that is none ends the pairing.
                ask(id, connection) {
                    let number = await agent.passkey(of: peer)
                    return .passkey(number.map { UInt32(clamping: $0) } ?? .max)
                }
            }
        }

        /// Asks a person, until an answer comes or the pairing is over.
        private func ask(
            _ id: PairingQuestionID, _ connection: ConnectionID,
            _ question: @escaping @Sendable () async -> PairingAnswer
        ) {
            let task = Task {
                let said = await question()
                answer(id, said)
            }
            state.withLock { $0.questions.updateValue(task, forKey: connection) }?.cancel()
        }

        private func answer(_ id: PairingQuestionID, _ answer: PairingAnswer) {
            try? change { state, now in state.host.answerPairing(id, answer, at: now) }
        }

        /// The connection is secure, or its pairing or the connection itself has ended: pending questions are void.
        func didSecure(_ id: ConnectionID, _ outcome: Result<Void, BluetoothError>) {
            let (question, waiters) = state.withLock { state in
                (state.questions.removeValue(forKey: id), state.securing.removeValue(forKey: id) ?? [])
            }
            question?.cancel()
            for waiter in waiters { waiter.resume(outcome) }
        }

        func pairingDidFail(_ id: ConnectionID, _ failure: PairingFailure) {
            let hint =
                if case .notEncrypted = failure {
                    " The peer has lost its keys, or another uses its address. If it is the peer, forget it here and pair again."
                } else { "" }
            didSecure(
                id,
                .failure(
                    BluetoothError(
                        .att(.insufficientAuthentication), "The connection is not secure: \(failure).\(hint)")))
            note("Pairing failed: \(failure).\(hint)")
        }

        func didBond(_ bond: Bond) {
            // A peer has told the address that it keeps: it goes by the name that it has already.
            state.withLock { $0.peers.add(bond.lastingAddress, for: bond.peer) }
            do throws(BluetoothError) { try saveBonds() } catch { note(error.message) }
        }

        /// A bonded client relies on its subscriptions also when this process ends first: they are written within a second,
        /// however often they change.
        func rememberSubscriptions() {
            let loop = state.withLock { state -> (any EventLoop)? in
                guard pairing?.bondFile != nil, !state.isStoringPeers, let loop = state.channel?.eventLoop else {
                    return nil
                }
                state.isStoringPeers = true
                return loop
            }
            loop?.scheduleTask(in: .seconds(1)) { [weak self] in
                self?.state.withLock { $0.isStoringPeers = false }
                self?.rememberPeers()
            }
        }

        /// Keeps what a connection that has ended has taught, beside the keys.
        func rememberPeers() {
            guard let path = pairing?.bondFile else { return }
            let changed = state.withLock { state -> KnownPeers? in
                let known = state.host.knownPeers
                guard known != state.storedPeers else { return nil }
                state.storedPeers = known
                return known
            }
            guard let changed else { return }
            do throws(BluetoothError) { try BondFile(path: path).writePeers(changed) } catch { note(error.message) }
        }

        private func saveBonds() throws(BluetoothError) {
            guard let path = pairing?.bondFile else { return }
            try BondFile(path: path).write {
                .init(
                    address: address, identityResolvingKey: resolvingKey.map(BondFile.Entry.text),
                    bonds: state.withLock { $0.host.bonds }.map { .init($0) })
            }
        }
    }
#endif
