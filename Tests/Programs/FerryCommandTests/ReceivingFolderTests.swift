import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FerryCommand

/// What a receiver writes to its folder, and what it lets a sender make grow there.
@Suite(.tags(.program)) struct ReceivingFolderTests {
    private typealias Found = (count: UInt64, writer: any ItemWriter)

    private func item(_ name: String, size: UInt64 = 3, mode: UInt16? = nil) -> TransferItem {
        TransferItem(kind: .file, mode: mode, size: size, name: name)
    }

    private func inFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ferry-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path)
    }

    private func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

    private func permissions(_ path: String) throws -> UInt16 {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber).uint16Value
    }

    private func part(_ place: Place) throws -> Found {
        guard case .part(let count, let writer) = place else { throw NotYet("\(place) is no part") }
        return (count, writer)
    }

    private func receive(_ item: TransferItem, _ text: String, into destination: FolderDestination) throws {
        let (_, writer) = try part(try destination.open(item))
        try writer.begin(at: 0)
        try writer.write(Array(text.utf8)[...])
        try writer.finish()
    }

    /// The second sender has opened the part when the first one's file gets its name: the lock is free then, and the file is not
    /// the second's to write.
    @Test(arguments: [false, true]) func aFinishedFileIsNotWrittenByWhoOpenedItsPart(overwrites: Bool) throws {
        try inFolder { folder in
            let first = Mutex<(any ItemWriter)?>(nil)
            let failure = Mutex<(any Error)?>(nil)
            var seams = ReceivingFolder.Seams()
            seams.didOpenPart = {
                guard let writer = first.withLock({ $0.take() }) else { return }
                do { try writer.finish() } catch { failure.withLock { $0 = error } }
            }
            let destination = try FolderDestination(folder, overwrites: overwrites, seams: seams)
            let (_, writer) = try part(try destination.open(item("a")))
            try writer.begin(at: 0)
            try writer.write(Array("one".utf8)[...])
            first.withLock { $0 = writer }
            let place = try destination.open(item("a"))
            #expect(failure.withLock { $0 } == nil)
            #expect(first.withLock { $0 } == nil)
            if case .whole(let file) = place {
                #expect(!overwrites)
                #expect(try file.content().count == 3)
            } else {
                let (count, second) = try part(place)
                #expect(overwrites && count == 0)
                try second.begin(at: 0)
                try second.write(Array("tw".utf8)[...])
            }
            #expect(text("\(folder)/a") == "one")
        }
    }

    @Test func twoSendersOfOneNameDoNotWriteOneFile() throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            // Both have been told that nothing is there.
            let (_, first) = try part(try destination.open(item("a")))
            let (_, second) = try part(try destination.open(item("a")))
            try first.write(Array("one".utf8)[...])
            #expect(throws: Refusal.self) { try second.write(Array("two".utf8)[...]) }
            try first.finish()
            #expect(throws: Refusal.self) {
                try second.write(Array("two".utf8)[...])
                try second.finish()
            }
            #expect(text("\(folder)/a") == "one")
        }
    }

    @Test func aPartThatIsNamedAlreadyIsTakenAway() throws {
        try inFolder { folder in
            // As a receiver leaves it that was killed between the two.
            try "one".write(toFile: "\(folder)/a", atomically: false, encoding: .utf8)
            try #require(link("\(folder)/a", "\(folder)/.a.ferry-part") == 0)
            let destination = try FolderDestination(folder, overwrites: true)
            try receive(item("a"), "two", into: destination)
            #expect(text("\(folder)/a") == "two")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a"])
        }
    }

    private struct Synchronized: Equatable {
        var inode: UInt64
        /// Whether the file had its name by then.
        var isNamed: Bool
    }

    /// "Done" is said of a file when a power cut takes neither its bytes nor its name away, nor those of its folders.
    @Test func foldersAreSynchronizedAfterTheFileHasItsName() throws {
        try inFolder { folder in
            let log = Mutex<[Synchronized]>([])
            var seams = ReceivingFolder.Seams()
            seams.synchronize = { (file) throws(SystemFile.Failure) in
                try file.synchronize()
                let inode = try file.stamp().inode
                let isNamed = FileManager.default.fileExists(atPath: "\(folder)/in/d/a")
                log.withLock { $0.append(Synchronized(inode: inode, isNamed: isNamed)) }
            }
            func inode(_ path: String) throws -> UInt64 { try SystemFile.opened(path).stamp().inode }
            var destination = try FolderDestination("\(folder)/in", overwrites: false, seams: seams)
            try receive(item("d/a"), "one", into: destination)
            let (outer, root) = (try inode(folder), try inode("\(folder)/in"))
            let (inner, file) = (try inode("\(folder)/in/d"), try inode("\(folder)/in/d/a"))
            #expect(
                log.withLock { $0 } == [
                    Synchronized(inode: outer, isNamed: false), Synchronized(inode: root, isNamed: false),
                    Synchronized(inode: file, isNamed: false), Synchronized(inode: inner, isNamed: true),
                ])
            // A folder's name as well.
            log.withLock { $0 = [] }
            guard case .settled = try destination.open(TransferItem(kind: .folder, name: "d/e")) else {
                Issue.record("a folder needs data")
                return
            }
            #expect(log.withLock { $0 }.map(\.inode) == [inner])
            // What is there may be what a receiver has left that was killed before it synchronised.
            log.withLock { $0 = [] }
            destination = try FolderDestination("\(folder)/in", overwrites: false, seams: seams)
            guard case .whole(let whole) = try destination.open(item("d/a")) else {
                Issue.record("the file is not there")
                return
            }
            try whole.keep()
            #expect(log.withLock { $0 }.map(\.inode) == [file, inner, root])
        }
    }

    /// The sender's permissions without what the umask takes away, and a folder stays open to its owner.
    @Test(arguments: [(0o777, 0o777), (0o700, 0o700), (0o640, 0o640), (0, 0), (nil, 0o666)] as [(UInt16?, UInt16)])
    func permissionsOfFiles(_ sent: UInt16?, _ expected: UInt16) throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            try receive(item("a", mode: sent), "one", into: destination)
            let mask = try ReceivingFolder(folder, overwrites: false, seams: .init()).umask
            #expect(mask & 0o022 != 0, "the test needs a umask")
            #expect(try permissions("\(folder)/a") == expected & ~UInt16(mask))
        }
    }

    @Test(arguments: [(0o777, 0o777), (0o700, 0o700), (0o070, 0o770), (0, 0o700), (nil, 0o777)] as [(UInt16?, UInt16)])
    func permissionsOfFolders(_ sent: UInt16?, _ expected: UInt16) throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            _ = try destination.open(TransferItem(kind: .folder, mode: sent, name: "d"))
            let mask = try ReceivingFolder(folder, overwrites: false, seams: .init()).umask
            #expect(try permissions("\(folder)/d") == expected & ~UInt16(mask))
        }
    }

    @Test func nothingIsWrittenForWhoBringsNothing() throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            for number in 0..<200 {
                let (_, writer) = try part(try destination.open(item("d\(number)/a")))
                try writer.begin(at: 0)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    @Test func partsAreBoundedAndTheSmallestGo() throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            func leave(_ name: String, _ count: Int) throws {
                let (_, writer) = try part(try destination.open(item(name, size: 5000)))
                try writer.write([UInt8](repeating: 1, count: count)[...])
            }
            try leave("large", 1000)
            for number in 0..<300 { try leave("small\(number)", 1) }
            var left = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(left.count == ReceivingBounds.mostParts)
            #expect(left.contains(".large.ferry-part"))
            // One that is taken up again is no part that nobody writes, and one that is finished is none.
            let (count, writer) = try part(try destination.open(item("large", size: 5000)))
            #expect(count == 1000)
            for number in 0..<300 { try leave("larger\(number)", 2000) }
            try writer.finish()
            left = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(left.count == ReceivingBounds.mostParts + 1)
            #expect(left.contains("large"))
        }
    }

    @Test func foldersWithNothingInThemAreBounded() throws {
        try inFolder { folder in
            var seams = ReceivingFolder.Seams()
            seams.synchronize = { (_) throws(SystemFile.Failure) in }
            let destination = try FolderDestination(folder, overwrites: false, seams: seams)
            func make(_ name: String) throws { _ = try destination.open(TransferItem(kind: .folder, name: name)) }
            for number in 0..<ReceivingBounds.mostEmptyFolders { try make("d\(number)") }
            let error = #expect(throws: Refusal.self) { try make("more") }
            #expect(error?.description.contains("1024 folders were made in which no file has arrived") == true)
            #expect(throws: Refusal.self) { try receive(item("more/a"), "one", into: destination) }
            // What is there is no new folder, and one that a file has come into makes room.
            try make("d7")
            try receive(item("d7/a"), "one", into: destination)
            try make("more")
            #expect(throws: Refusal.self) { try make("evenmore") }
        }
    }

    @Test func whatIsDamagedLeavesNothing() throws {
        try inFolder { folder in
            let destination = try FolderDestination(folder, overwrites: false)
            do {
                let (_, writer) = try part(try destination.open(item("a")))
                try writer.write([1])
                writer.discard()
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    /// To Swift a slash and an accent are one character, to a file system they are not.
    @Test func aSlashWithAnAccentLeadsNowhere() throws {
        try inFolder { outer in
            let folder = "\(outer)/in"
            let destination = try FolderDestination(folder, overwrites: true)
            _ = try destination.open(TransferItem(kind: .folder, name: "..."))
            #expect(throws: Refusal.self) { try receive(item("../\u{301}a"), "one", into: destination) }
            #expect(throws: Refusal.self) {
                try destination.open(TransferItem(kind: .folder, name: "../\u{301}d"))
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: outer) == ["in"])
            try receive(item("b/\u{301}c"), "one", into: destination)
            #expect(text("\(folder)/b/\u{301}c") == "one")
        }
    }
}
