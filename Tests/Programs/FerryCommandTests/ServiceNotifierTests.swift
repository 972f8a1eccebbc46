#if NATS && Records
    import Ferry
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// What a service manager is told, by a socket in its place.
    @Suite("The service manager's messages", .tags(.program)) struct ServiceNotifierTests {
        /// Receives what is sent, as systemd does.
        private final class Manager {
            private let socket: Int32
            let address: String

            init(abstract: Bool) throws {
                let name = "ferry-\(UUID().uuidString)"
                address = abstract ? "@\(name)" : "/tmp/\(name)"
                socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
                var place = sockaddr_un()
                place.sun_family = sa_family_t(AF_UNIX)
                var bytes = Array(address.utf8)
                if abstract { bytes[0] = 0 }
                withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: bytes) }
                let size = MemoryLayout<sa_family_t>.size + bytes.count + (abstract ? 0 : 1)
                let bound = withUnsafePointer(to: &place) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, socklen_t(size)) }
                }
                try #require(bound == 0)
            }

            deinit {
                close(socket)
                if address.hasPrefix("/") { unlink(address) }
            }

            /// All messages that have come.
            func messages() -> [String] {
                var messages: [String] = []
                var bytes = [UInt8](repeating: 0, count: 4096)
                while true {
                    let count = recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
                    guard count > 0 else { return messages }
                    messages.append(String(decoding: bytes.prefix(count), as: UTF8.self))
                }
            }
        }

        @Test("It is ready once, and alive as often as the manager wants", arguments: [false, true])
        func ready(abstract: Bool) throws {
            let manager = try Manager(abstract: abstract)
            let notifier = ServiceNotifier(
                ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"], process: 7)
            let now = Timestamp.zero
            notifier.waits("The disk\nis full.")
            #expect(manager.messages() == ["STATUS=The disk is full.\nEXTEND_TIMEOUT_USEC=60000000"])
            notifier.works("one", at: now)
            #expect(manager.messages() == ["READY=1\nWATCHDOG=1\nSTATUS=one"])
            notifier.works("one", at: now + .seconds(9))
            #expect(manager.messages() == [])
            notifier.works("two", at: now + .seconds(10))
            #expect(manager.messages() == ["WATCHDOG=1\nSTATUS=two"])
            notifier.reloads()
            let reload = manager.messages()
            #expect(reload.count == 1 && reload[0].hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
            notifier.works("two", at: now + .seconds(11))
            #expect(manager.messages() == ["READY=1\nWATCHDOG=1\nSTATUS=two"])
            notifier.ends()
            #expect(manager.messages() == ["STOPPING=1"])
        }

        @Test("Another process is watched, or none") func unwatched() throws {
            let manager = try Manager(abstract: true)
            for environment in [["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"], [:], ["WATCHDOG_USEC": "-1"]] {
                let place = ["NOTIFY_SOCKET": manager.address]
                let notifier = ServiceNotifier(environment.merging(place) { $1 }, process: 7)
                #expect(notifier.watchdog == nil)
                notifier.works("one")
                #expect(manager.messages() == ["READY=1\nSTATUS=one"])
            }
        }

        @Test("Nobody listens, or nobody asks") func silent() {
            for address in [nil, "", "relative", "/nobody/is/there", "@" + String(repeating: "x", count: 200)] {
                let notifier = ServiceNotifier(address.map { ["NOTIFY_SOCKET": $0] } ?? [:])
                notifier.works("one")
                notifier.reloads()
                notifier.ends()
            }
        }
    }
#endif
