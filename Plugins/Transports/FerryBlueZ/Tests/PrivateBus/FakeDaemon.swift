#if BlueZ
    import CSystemd
    @testable import FerryBlueZ
    import Synchronization
    import TestSupport
    import Testing

    /// An org.bluez on a private bus: one adapter, one device, and whatever a test has it answer.
    final class FakeDaemon: Sendable {
        static let adapter = "/org/bluez/hci0"
        static let device = "/org/bluez/hci0/dev_00_AA_01_00_00_42"

        typealias Answer = Result<[BusValue], BusError>

        /// Of the thread alone.
        nonisolated(unsafe) private var bus: Bus?
        private let thread: BusThread
        private let answers = Mutex<[String: Answer?]>([:])
        private let calls = Mutex<[Call]>([])
        /// Services of the device, of which is not told before the answer that says that all are found.
        private let late = Mutex<[BusEntry]>([])
        /// The device's properties.
        private let properties = Mutex<ObjectTree.Properties>([
            "Address": .string("00:AA:01:00:00:42"), "AddressType": .string("public"), "Paired": .bool(false),
            "Connected": .bool(true),
        ])

        private struct Call {
            let member: String
            let sender: String
            let arguments: [BusValue]
            /// Whether the device was connected then, and finding its services not over.
            let wasBusy: Bool
        }

        /// What was called, in order.
        var called: [String] { calls.withLock { $0.map(\.member) } }
        /// Whether it was called while the device was connected and its services not found.
        func wasBusy(at member: String) -> Bool { calls.withLock { $0.contains { $0.member == member && $0.wasBusy } } }
        func arguments(of member: String) -> [BusValue] {
            calls.withLock { $0.last { $0.member == member }?.arguments ?? [] }
        }

        /// Whether the adapter comes right after the answer to what there is.
        private let comesLate: Bool

        init(_ address: String, adapterComesLate comesLate: Bool = false) async throws {
            self.comesLate = comesLate
            thread = try BusThread()
            let name = await withCheckedContinuation { continuation in
                thread.execute { [self] in
                    guard let bus = try? Bus(address, on: thread) else { return continuation.resume(returning: false) }
                    self.bus = bus
                    thread.beforeWaiting = { bus.process() }
                    bus.onMessage = { [weak self, unowned bus] message in
                        guard let self, message.isCall else { return false }
                        return self.answer(message, bus)
                    }
                    bus.call(
                        "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                        [.string("org.bluez"), .uint32(0)], timeout: .unreached
                    ) { reply in
                        if case .success = reply {
                            continuation.resume(returning: true)
                        } else {
                            continuation.resume(returning: false)
                        }
                    }
                }
            }
            try #require(name)
        }

        func stop() {
            thread.execute { [self] in
                bus?.close()
                bus = nil
                thread.beforeWaiting = { nil }
            }
            thread.stop()
        }

        /// What a method is answered with; nil for never.
        func answer(_ member: String, with answer: Answer?) { answers.withLock { $0[member] = .some(answer) } }

        private func answer(_ call: BusMessage, _ bus: Bus) -> Bool {
            let arguments = (try? call.read()) ?? []
            let device = properties.withLock { $0 }
            let isBusy = device["Connected"]?.bool == true && device["ServicesResolved"]?.bool == false
            calls.withLock {
                $0.append(Call(member: call.member, sender: call.sender, arguments: arguments, wasBusy: isBusy))
            }
            switch call.member {
            case "GetManagedObjects" where comesLate:
                bus.reply(to: call, [.dictionary("o", "a{sa{sv}}", [])])
                for object in objects { add(object, bus) }
            case "GetManagedObjects": bus.reply(to: call, [.dictionary("o", "a{sa{sv}}", objects)])
            case "GetAll" where call.path == Self.device:
                let isResolved = device["ServicesResolved"]?.bool == true
                for object in isResolved ? late.withLock(\.self) : [] { add(object, bus) }
                bus.reply(to: call, [.options(device)])
            default: answerAsTold(call, bus)
            }
            return true
        }

        private func answerAsTold(_ call: BusMessage, _ bus: Bus) {
            switch answers.withLock({ $0[call.member] }) {
            case .some(.some(.success(let values))): bus.reply(to: call, values)
            case .some(.some(.failure(let error))): bus.fail(call, error)
            case .some(.none): break
            case .none: bus.reply(to: call, [])
            }
        }

        private static func interfaces(_ interfaces: [String: ObjectTree.Properties]) -> BusValue {
            .dictionary("s", "a{sv}", interfaces.map { BusEntry(key: .string($0), value: .options($1)) })
        }

        private func add(_ object: BusEntry, _ bus: Bus) {
            try? bus.send([object.key, object.value]) { signal in
                let interface = "org.freedesktop.DBus.ObjectManager"
                return sd_bus_message_new_signal(bus.raw, &signal, "/", interface, "InterfacesAdded")
            }
        }

        /// Changes the device, and tells of it unless that is to be kept silent.
        func change(_ properties: ObjectTree.Properties, silently: Bool = false) {
            thread.execute { [self] in
                self.properties.withLock { $0.merge(properties) { _, new in new } }
                guard !silently, let bus else { return }
                try? bus.send([.string("org.bluez.Device1"), .options(properties), .strings([])]) { signal in
                    let interface = "org.freedesktop.DBus.Properties"
                    return sd_bus_message_new_signal(bus.raw, &signal, Self.device, interface, "PropertiesChanged")
                }
            }
        }

        /// The device has one more service, of which is told now, or not before the answer that says that all are found.
        func addService(_ name: String, _ uuid: String, isLate: Bool = false) {
            let service: ObjectTree.Properties = ["UUID": .string(uuid), "Primary": .bool(true)]
            let object = BusEntry(
                key: .path("\(Self.device)/\(name)"), value: Self.interfaces(["org.bluez.GattService1": service]))
            guard !isLate else { return late.withLock { $0.append(object) } }
            thread.execute { [self] in
                if let bus { add(object, bus) }
            }
        }

        private var objects: [BusEntry] {
            let adapter: ObjectTree.Properties = [
                "Powered": .bool(true), "Address": .string("00:AA:01:00:00:00"), "AddressType": .string("public"),
            ]
            let device = properties.withLock { $0 }
            return [
                BusEntry(
                    key: .path(Self.adapter),
                    value: Self.interfaces(["org.bluez.Adapter1": adapter, "org.bluez.GattManager1": [:]])),
                BusEntry(key: .path(Self.device), value: Self.interfaces(["org.bluez.Device1": device])),
            ]
        }

        /// Calls the agent that was registered, as bluetoothd does.
        func ask(_ member: String, _ arguments: [BusValue], timeout: Duration = .unreached) async -> Answer {
            let owner = calls.withLock { $0.last { $0.member == "RegisterAgent" }?.sender } ?? ""
            return await withCheckedContinuation { continuation in
                thread.execute { [self] in
                    guard let bus else {
                        return continuation.resume(returning: .failure(.closed))
                    }
                    bus.call(owner, "/ferry/agent", "org.bluez.Agent1", member, arguments, timeout: timeout) { reply in
                        continuation.resume(
                            returning: reply.flatMap { message in
                                Result { () throws(BusError) in try message.read() }
                            })
                    }
                }
            }
        }
    }
#endif
