#if Records
    import Ferry
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Files that cannot be what a store needs: each error says so, and what to do.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct StoreFileTests {
        let folder: Folder

        init() throws { folder = try Folder() }

        private func open(_ name: String = "a") throws(FerryError) -> RecordStore {
            try RecordStore.open(folder.file(name))
        }

        enum Case: CaseIterable { case file, folder, lock }

        /// Another process tries, for these tests may be root's, who may write anywhere.
        @Test(arguments: Case.allCases) func readOnly(_ what: Case) async throws {
            let store = try open()
            try await store.append(bytes("1"), to: "p")
            await store.close()
            let path = folder.file("a")
            func set(_ mode: Int, of path: String) throws {
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            }
            try set(0o777, of: folder.path)
            try set(what == .file ? 0o444 : 0o666, of: path)
            try set(what == .lock ? 0o444 : 0o666, of: path + "-lock")
            if what == .folder { try set(0o555, of: folder.path) }
            let before = try Data(contentsOf: URL(fileURLWithPath: path))
            let worker = try ProcessTests.Worker(["open", path])
            #expect(await worker.wait().status == 0)
            let output = worker.output
            #expect(output.first == "\(FerryError.Code.storeNotWritable)", "\(output)")
            let message = output.last ?? ""
            #expect(message.contains(path) && message.contains("Check that"), "\(message)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
            try set(0o755, of: folder.path)
            for file in [path, path + "-lock"] { try set(0o644, of: file) }
            // What was in it is there.
            let again = try open()
            #expect(try await again.records(to: "p").map(\.bytes) == [bytes("1")])
            await again.close()
        }

        @Test func aFullDiskRefusesAndTheStoreGoesOn() async throws {
            let store = try open()
            try await store.append(bytes("before"), to: "p")
            func allow(_ count: Int) async throws {
                try await store.read { database, _ in
                    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
                    _ = try Row.fetchOne(database, sql: "PRAGMA max_page_count = \(pages + count)")
                }
            }
            try await allow(1)
            let large = [UInt8](repeating: 1, count: 100_000)
            let error = await #expect(throws: FerryError.self) { try await store.append(large, to: "p") }
            #expect(error?.code == .diskFull)
            #expect(error?.message.contains(store.path) == true && error?.message.contains("Make room") == true)
            #expect(try await store.records(to: "p").map(\.bytes) == [bytes("before")])
            try await allow(1000)
            try await store.append(large, to: "p")
            #expect(try await store.records(to: "p").map(\.bytes.count) == [6, 100_000])
            await store.close()
        }

        /// So that a full disk does not keep a store from being opened.
        @Test func openingAndListingWritesNothing() async throws {
            var store = try open()
            try await store.append(bytes("1"), to: "p")
            let epoch = store.epoch
            await store.close()
            let files = ["", "-mark", "-reserve"].map { URL(fileURLWithPath: folder.file("a") + $0) }
            let before = try files.map { try Data(contentsOf: $0) }
            for _ in 0..<2 {
                store = try open()
                #expect(store.epoch.generation == epoch.generation + 1)
                #expect(try await store.waiting().map(\.count) == [1])
                #expect(try await store.records(to: "p").map(\.bytes) == [bytes("1")])
                #expect(try await store.undone() == 0)
                let log = try FileManager.default.attributesOfItem(atPath: folder.file("a") + "-wal")
                #expect(log[.size] as? Int == 0)
                await store.close()
            }
            #expect(try files.map { try Data(contentsOf: $0) } == before)
        }

        /// Without its reserve a store grows no further, and goes on making room.
        @Test func withoutAReserveOnlyRoomIsMade() async throws {
            let store = try open()
            let id = try await store.append(bytes("1"), to: "p")
            await store.close()
            let reserve = folder.file("a-reserve")
            try FileManager.default.removeItem(atPath: reserve)
            // It cannot be taken again where a folder has its name.
            try FileManager.default.createDirectory(atPath: reserve, withIntermediateDirectories: false)
            let again = try open()
            let error = await #expect(throws: FerryError.self) { try await again.append(bytes("2"), to: "p") }
            #expect(error?.code == .diskFull)
            try await again.cancel(id, to: "p")
            #expect(try await again.waiting().map(\.count) == [0])
            try FileManager.default.removeItem(atPath: reserve)
            try await again.append(bytes("2"), to: "p")
            #expect(FileManager.default.fileExists(atPath: reserve))
            await again.close()
        }

        /// What waits while a transaction is being synced shares the next one.
        @Test func whatFindsNoRoomFailsAloneInItsTransaction() async throws {
            let store = try open()
            try await store.append(bytes("before"), to: "p")
            try await store.read { database, _ in
                let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
                _ = try Row.fetchOne(database, sql: "PRAGMA max_page_count = \(pages + 1)")
            }
            let gate = try await store.holdWriter()
            let large = [UInt8](repeating: 1, count: 100_000)
            async let first = store.waiting().map(\.count)
            try await until("the first waits") { store.committer.waitingPieces >= 1 }
            let refused = Task { try await store.append(large, to: "p") }
            try await until("the second waits") { store.committer.waitingPieces >= 2 }
            async let last = store.records(to: "p").map(\.bytes)
            try await until("the third waits") { store.committer.waitingPieces >= 3 }
            gate.signal()
            #expect(try await first == [1])
            let error = await #expect(throws: FerryError.self) { _ = try await refused.value }
            #expect(error?.code == .diskFull)
            #expect(try await last == [bytes("before")])
            await store.close()
        }

        @Test func roomIsLookedForAndNothingIsLeftOfThat() async throws {
            let store = try open()
            #expect(await store.hasRoom())
            #expect(await !store.hasRoom(for: .max))
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.allSatisfy { !$0.hasSuffix("-room") })
            await store.close()
        }
    }
#endif
