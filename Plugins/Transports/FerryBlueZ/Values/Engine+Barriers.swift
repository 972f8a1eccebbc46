#if BlueZ
    import Glibc
    import Synchronization

    extension BlueZEngine {
        /// Makes the sending end of a socket: a barrier behind every full window, and ready signals to `onReady`.
        func makePipe(
            _ descriptor: FileDescriptor, limit: Int, device: String, characteristic: String?,
            onReady: @escaping @Sendable () -> Void
        ) -> ValuePipe {
            let most = characteristic == nil ? configuration.window : min(configuration.window, Self.mostWrites)
            return ValuePipe(descriptor, limit: limit, window: mayOvertake ? most : 1) { [weak self] pipe in
                self?.perform { $0.runBarrier(behind: pipe, device, characteristic, onReady) }
            } onBlocked: { [weak self] pipe in
                self?.perform { $0.waitForSpace(in: pipe, onReady) }
            }
        }

        /// The most writes on their way. A peripheral on BlueZ gets them as D-Bus calls, of which dbus-daemon keeps 128 without
        /// a reply and drops the rest, and the answer to a barrier may overtake those of one window.
        private static var mostWrites: Int { 60 }

        /// Whether more than one value may be in flight: bluetoothd keeps their order, or the configuration allows
        /// reordering.
        private var mayOvertake: Bool { configuration.allowsReordering || shared.withLock { $0.bearers } == 1 }

        /// Something that the peer answers, sent behind the values: bluetoothd sends what needs no response first, so the
        /// answer says that the peer has them all. Where there is nothing to ask, the time that they are assumed to take.
        private func runBarrier(
            behind pipe: ValuePipe, _ device: String, _ characteristic: String?,
            _ onReady: @escaping @Sendable () -> Void
        ) {
            if pipe.barrier.map({ objects[$0.path, $0.interface] == nil }) ?? true {
                pipe.barrier = barrierTarget(device, characteristic)
            }
            guard let bus, let target = pipe.barrier else {
                return pass(pipe, after: .seconds(1) * pipe.markedBytes / max(1, configuration.assumedRate), onReady)
            }
            bus.call(
                Self.service, target.path, target.interface, "ReadValue", [.options([:])],
                timeout: configuration.callTimeout
            ) { [weak self] reply in
                // An error of the peer's is an answer too; another reader's turn is not.
                var isInProgress = false
                if case .failure(let error) = reply { isInProgress = error.isInProgress }
                self?.assumeIsolated { [isInProgress] engine in
                    if isInProgress {
                        engine.thread.schedule(after: .milliseconds(5)) { [weak engine] in
                            engine?.assumeIsolated { $0.runBarrier(behind: pipe, device, characteristic, onReady) }
                        }
                    } else {
                        engine.pass(pipe, after: .zero, onReady)
                    }
                }
            }
        }

        private func pass(_ pipe: ValuePipe, after delay: Duration, _ onReady: @escaping @Sendable () -> Void) {
            guard delay > .zero else {
                if pipe.barrierPassed() { onReady() }
                return
            }
            thread.schedule(after: delay) { if pipe.barrierPassed() { onReady() } }
        }

        /// What to read from a device so that it answers: the subscription's own descriptor, which everyone may read
        /// (Core Specification 5.4, Vol 3, Part G, 3.3.3.3), or what the Device Information service tells.
        private func barrierTarget(_ device: String, _ characteristic: String?) -> BarrierTarget? {
            let descriptor = "org.bluez.GattDescriptor1", value = "org.bluez.GattCharacteristic1"
            if let characteristic {
                for path in objects.paths(below: characteristic, with: descriptor)
                where objects[path, descriptor]?["UUID"]?.text?.hasPrefix("00002902-") == true {
                    return BarrierTarget(path: path, interface: descriptor)
                }
            }
            for path in objects.paths(below: device, with: value) {
                guard let object = objects[path, value], object["Flags"]?.texts.contains("read") == true,
                    let service = object["Service"]?.text,
                    objects[service, "org.bluez.GattService1"]?["UUID"]?.text?.hasPrefix("0000180a-") == true
                else { continue }
                return BarrierTarget(path: path, interface: value)
            }
            return nil
        }

        /// The socket is full: bluetoothd is behind with reading.
        private func waitForSpace(in pipe: ValuePipe, _ onReady: @escaping @Sendable () -> Void) {
            thread.waitForSpace(in: pipe.descriptor) {
                if pipe.isWritable() { onReady() }
            }
        }
    }

    extension BusThread {
        /// Calls `body` once when a socket has space for a good many values (Linux says so below a quarter), or has ended.
        func waitForSpace(in descriptor: FileDescriptor, _ body: @escaping () -> Void) {
            // A duplicate descriptor, since the other one's reader continues.
            let copy = dup(descriptor.rawValue)
            guard copy >= 0 else {
                schedule(after: .milliseconds(1), body)
                return
            }
            let writer = FileDescriptor(owning: copy)
            watch(writer.rawValue, Int32(POLLOUT)) { [weak self] _ in
                self?.unwatch(writer.rawValue)
                body()
            }
        }
    }
#endif
