#if BlueZ
    import FerryBluetooth
    import Synchronization

    // Pairing that this side begins.
    extension BlueZEngine {
        private static let device = "org.bluez.Device1"
        /// How long bluetoothd's answer may take after its signal that a device is paired. BlueZ 5.66 never answers for
        /// two of one machine's adapters that pair with each other.
        private static let grace: UInt64 = 500_000
        /// A person may be asked twice (`PairingAgentExport.patience`), and the connection be made first.
        private static let patience = Duration.seconds(150)

        nonisolated func pair(with peer: PeerID) async throws(BluetoothError) {
            try requirePower()
            guard let path = shared.withLock({ $0.peers.key(of: peer) }) else { throw .unknownPeer(peer) }
            let waiter = Waiter<Void>()
            perform { $0.beginPairing(path, waiter) }
            try await waiter.wait { self.perform { $0.tell(path, Self.device, "CancelPairing") } }
        }

        private func beginPairing(_ path: String, _ waiter: Waiter<Void>) {
            if let refusal = agent?.refusal {
                return waiter.resume(
                    .failure(
                        BluetoothError(.notSupported, "bluetoothd does not take this program's agent: \(refusal).")))
            }
            guard let bus else {
                return waiter.resume(.failure(BusError.closed.pairing("Cannot pair")))
            }
            if isPaired(path) { return waiter.resume(.success(())) }
            bus.call(Self.service, path, Self.device, "Pair", [], timeout: Self.patience) { reply in
                switch reply {
                case .success: waiter.resume(.success(()))
                case .failure(let error) where error.name == "org.bluez.Error.AlreadyExists":
                    waiter.resume(.success(()))
                case .failure(let error):
                    waiter.resume(.failure(error.pairing("Cannot pair with \(path.split(separator: "/").last ?? "")")))
                }
            }
            watchPairing(path, waiter, since: nil, until: BusThread.now + UInt64(Self.patience / .microseconds(1)))
        }

        private func isPaired(_ path: String) -> Bool { objects[path, Self.device]?["Paired"]?.bool == true }

        /// Takes the news that a device is paired for the answer, when that does not come.
        private func watchPairing(_ path: String, _ waiter: Waiter<Void>, since: UInt64?, until end: UInt64) {
            let now = BusThread.now
            let since = isPaired(path) ? since ?? now : nil
            if let since, now - since > Self.grace { return waiter.resume(.success(())) }
            guard now < end, !waiter.isOver else { return }
            thread.schedule(after: .milliseconds(100)) { [weak self] in
                self?.assumeIsolated { $0.watchPairing(path, waiter, since: since, until: end) }
            }
        }

        // MARK: Keys

        var bondedPeers: [PeerID] {
            guard let adapterPath else { return [] }
            let paired = objects.paths(below: adapterPath, with: Self.device).filter(isPaired)
            return shared.withLock { shared in paired.map { shared.peer($0) } }
        }

        /// The same, with their addresses, which stand in the objects' paths.
        var bonds: [(peer: PeerID, name: String)] {
            guard let adapterPath else { return [] }
            let paired = objects.paths(below: adapterPath, with: Self.device).filter(isPaired)
            return shared.withLock { shared in
                paired.map { path in
                    let digits = path.split(separator: "/").last.map { $0.dropFirst(4).split(separator: "_") } ?? []
                    return (shared.peer(path), digits.joined(separator: ":"))
                }
            }
        }

        func forget(_ peer: PeerID) async throws(BluetoothError) {
            try requirePower()
            guard let adapterPath, let path = shared.withLock({ $0.peers.key(of: peer) }), objects.contains(path) else {
                return
            }
            do throws(BusError) {
                _ = try await call(adapterPath, "org.bluez.Adapter1", "RemoveDevice", [.path(path)])
            } catch  where error.isUnknownObject {
                return
            } catch {
                throw error.bluetooth("bluetoothd does not forget \(peer)")
            }
        }
    }

    extension BusError {
        /// Why pairing failed, in the adapter seam's words (org.bluez.Device(5), "Pair").
        func pairing(_ what: String) -> BluetoothError {
            func failed(_ why: String) -> BluetoothError {
                BluetoothError(.att(.insufficientAuthentication), "\(what): \(why) (\(name)).")
            }
            switch name {
            case "org.bluez.Error.AuthenticationFailed":
                return failed(
                    "the numbers differ, or the peer cannot pair in this way. If it has lost its keys, forget it and pair anew"
                )
            case "org.bluez.Error.AuthenticationRejected": return failed("the peer refused, or this side's agent did")
            case "org.bluez.Error.AuthenticationCanceled": return failed("one side gave up")
            case "org.bluez.Error.AuthenticationTimeout":
                return BluetoothError(
                    .timedOut, "\(what): the peer, or the user, did not answer in time.")
            case "org.bluez.Error.InProgress":
                return BluetoothError(.connectionFailed, "\(what): it is pairing already (\(name)).")
            default: return bluetooth(what)
            }
        }
    }
#endif
