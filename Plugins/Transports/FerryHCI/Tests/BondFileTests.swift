#if HCI
    import BluetoothHost
    import FerryBluetooth
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryHCI

    /// The file of the keys: whole and private at every instant, whatever is killed when.
    @Suite(.tags(.adapter), .timeLimit(.minutes(20))) struct BondFileTests {
        private static let path = ProcessInfo.processInfo.environment["FERRY_BOND_WRITER"]
        /// 1 000 in the long tier.
        private static let kills = ProcessInfo.processInfo.environment["FERRY_BOND_KILLS"].flatMap(Int.init) ?? 10

        private static func content(_ count: Int) -> BondFile.Content {
            let bonds = (0..<count).map { number in
                Bond(
                    peer: .staticRandom(UInt64(number)), longTermKey: [UInt8](repeating: UInt8(count), count: 16),
                    diversifier: 0, random: 0, identityResolvingKey: nil, isAuthenticated: false,
                    isSecureConnections: true, peerIsCentral: false)
            }
            return .init(address: 7, bonds: bonds.map { .init($0) })
        }

        /// Not a test: what the other one kills. It bonds with one peer after the other until then.
        @Test func writer() throws {
            guard let path = Self.path else { return }
            let file = BondFile(path: path)
            umask(0)
            var count = (try file.read()?.bonds.count ?? 0) % 64
            while true {
                count = count % 64 + 1
                try file.write { Self.content(count) }
            }
        }

        private struct Status {
            let mode: mode_t
            init?(_ path: String) {
                var status = stat()
                guard lstat(path, &status) == 0 else { return nil }
                mode = status.st_mode & 0o777
            }
        }

        @Test(.timeLimit(.minutes(30)))
        func aProcessThatIsKilledLeavesTheKeysWholeAndPrivate() async throws {
            let file = Interop.file("killed-bonds")
            for name in [file, file + ".new"] { try? FileManager.default.removeItem(atPath: name) }
            var generator = SystemRandomNumberGenerator()
            var seen: Set<Int> = []
            for kill in 1...Self.kills {
                // The first write shows that it has begun.
                let before = modified(file)
                let child = try ChildProcess(
                    CommandLine.arguments[0],
                    ["--testing-library", "swift-testing", "--filter", "BondFileTests/writer"],
                    environment: ProcessInfo.processInfo.environment.merging(["FERRY_BOND_WRITER": file]) { $1 },
                    output: .none, errors: .none)
                try await until("a write, kill \(kill)") { modified(file) != before || !child.isRunning }
                try #require(modified(file) != before, "the writer wrote nothing, kill \(kill)")
                for _ in 0...Int.random(in: 0...4000, using: &generator) {
                    for name in [file, file + ".new"] {
                        if let status = Status(name) {
                            #expect(status.mode & 0o077 == 0, "\(name) has mode \(String(status.mode, radix: 8))")
                        }
                    }
                }
                child.signal(SIGKILL)
                await child.ended()
                let content = try #require(try BondFile(path: file).read())
                #expect(content.bonds.compactMap(\.bond).count == content.bonds.count)
                // All of one write: each has its own number of bonds and its own key.
                #expect(content == Self.content(content.bonds.count))
                seen.insert(content.bonds.count)
            }
            // It was killed at different places.
            #expect(seen.count > 1)
        }

        private func modified(_ path: String) -> Int? {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            return Int(status.st_mtim.tv_sec) * 1_000_000_000 + status.st_mtim.tv_nsec
        }

        /// What has been proven of an identity is kept; a file from before that was written down proves nothing.
        @Test(arguments: [false, true]) func whatIsProvenIsKept(isProven: Bool) throws {
            let file = Interop.file("proven-bonds")
            var bond = Self.content(1).bonds[0]
            (bond.identity, bond.isIdentityRandom) = (0xC001_0203_0405, true)
            bond.isIdentityProven = isProven ? true : nil
            try BondFile(path: file).write { .init(address: 7, bonds: [bond]) }
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains("isIdentityProven") == isProven)
            let stored = try #require(try BondFile(path: file).read()?.bonds.first?.bond)
            #expect(stored.isIdentityProven == isProven)
            #expect(stored.isIdentityBelieved == isProven)
            #expect(BondFile.Entry(stored) == bond)
        }

        /// What another user has put in the place of the new file is not written on.
        @Test func aLinkInTheWayIsNotFollowed() throws {
            let file = Interop.file("linked-bonds")
            let target = Interop.file("linked-target")
            for name in [file, file + ".new", target] { try? FileManager.default.removeItem(atPath: name) }
            try "mine".write(toFile: target, atomically: false, encoding: .utf8)
            try FileManager.default.createSymbolicLink(atPath: file + ".new", withDestinationPath: target)
            try BondFile(path: file).write { Self.content(2) }
            #expect(try String(contentsOfFile: target, encoding: .utf8) == "mine")
            #expect(try BondFile(path: file).read() == Self.content(2))
            #expect(Status(file)?.mode == 0o600)
            #expect(Status(file + ".new") == nil)
        }

        @Test func aFolderThatIsNotThereIsSaid() {
            let error = #expect(throws: BluetoothError.self) {
                try BondFile(path: "/nowhere/at/all").write { Self.content(1) }
            }
            #expect(error?.message.contains("/nowhere/at/all.new cannot be made") == true)
        }
    }
#endif
