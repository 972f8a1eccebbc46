#if BlueZ
    import CSystemd
    @testable import FerryBlueZ
    import Foundation
    import Glibc
    import Synchronization
    import Testing

    /// A bus of the test's own (dbus-daemon(1)), which ends with it.
    final class PrivateBus: Sendable {
        private static let program = "/usr/bin/dbus-daemon"
        static var isHere: Bool { !Machine.isHere && FileManager.default.isExecutableFile(atPath: program) }

        let address: String
        private let process = Process()
        private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-bus-\(UUID().uuidString)")
        private let note: URL

        /// Whether somebody called org.bluez while it was not there.
        var startsBluetoothd: Bool { FileManager.default.fileExists(atPath: note.path()) }

        init() throws {
            note = folder.appending(path: "asked")
            let configuration = """
                <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
                 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
                <busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><policy context="default">
                <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
                </policy><servicedir>\(folder.path())</servicedir></busconfig>
                """
            let service = """
                [D-BUS Service]
                Name=org.bluez
                Exec=/usr/bin/touch \(note.path())

                """
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "bus.conf")
            try configuration.write(to: file, atomically: true, encoding: .utf8)
            try service.write(to: folder.appending(path: "org.bluez.service"), atomically: true, encoding: .utf8)
            process.executableURL = URL(filePath: Self.program)
            process.arguments = ["--config-file=\(file.path())", "--nofork", "--print-address"]
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            var line = Data()
            while !line.contains(UInt8(ascii: "\n")) {
                let more = output.fileHandleForReading.availableData
                try #require(!more.isEmpty, "dbus-daemon ended without telling its address")
                line += more
            }
            address = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        }

        // Not `terminate`: a process started from a thread of Swift's concurrency does not hear SIGTERM.
        deinit {
            kill(process.processIdentifier, SIGKILL)
            try? FileManager.default.removeItem(at: folder)
        }
    }

    /// An org.bluez on a private bus: one adapter, one device, and whatever a test has it answer.
    final class FakeDaemon: Sendable {
        static let adapter = "/org/bluez/hci0"
        static let device = "/org/bluez/hci0/dev_00_AA_01_00_00_42"

        typealias Answer = Result<[BusValue], BusError>

        /// Of the thread alone.
        nonisolated(unsafe) private var bus: Bus?
        private let thread: BusThread
        private let answers = Mutex<[String: Answer?]>([:])
        private let calls = Mutex<[(member: String, sender: String, arguments: [BusValue])]>([])

        /// What was called, in order.
        var called: [String] { calls.withLock { $0.map(\.member) } }
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
                        [.string("org.bluez"), .uint32(0)], timeout: .seconds(5)
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
            calls.withLock { $0.append((call.member, call.sender, arguments)) }
            if call.member == "GetManagedObjects" {
                guard comesLate else {
                    bus.reply(to: call, [.dictionary("o", "a{sa{sv}}", Self.objects)])
                    return true
                }
                bus.reply(to: call, [.dictionary("o", "a{sa{sv}}", [])])
                for object in Self.objects {
                    try? bus.send([object.key, object.value]) { signal in
                        let interface = "org.freedesktop.DBus.ObjectManager"
                        return sd_bus_message_new_signal(bus.raw, &signal, "/", interface, "InterfacesAdded")
                    }
                }
                return true
            }
            switch answers.withLock({ $0[call.member] }) {
            case .some(.some(.success(let values))): bus.reply(to: call, values)
            case .some(.some(.failure(let error))): bus.fail(call, error)
            case .some(.none): break
            case .none: bus.reply(to: call, [])
            }
            return true
        }

        private static func interfaces(_ interfaces: [String: ObjectTree.Properties]) -> BusValue {
            .dictionary("s", "a{sv}", interfaces.map { BusEntry(key: .string($0), value: .options($1)) })
        }

        private static var objects: [BusEntry] {
            let adapter: ObjectTree.Properties = [
                "Powered": .bool(true), "Address": .string("00:AA:01:00:00:00"), "AddressType": .string("public"),
            ]
            let device: ObjectTree.Properties = [
                "Address": .string("00:AA:01:00:00:42"), "AddressType": .string("public"), "Paired": .bool(false),
                "Connected": .bool(true),
            ]
            return [
                BusEntry(
                    key: .path(Self.adapter),
                    value: interfaces(["org.bluez.Adapter1": adapter, "org.bluez.GattManager1": [:]])),
                BusEntry(key: .path(Self.device), value: interfaces(["org.bluez.Device1": device])),
            ]
        }

        /// Calls the agent that was registered, as bluetoothd does.
        func ask(_ member: String, _ arguments: [BusValue], timeout: Duration = .seconds(10)) async -> Answer {
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
