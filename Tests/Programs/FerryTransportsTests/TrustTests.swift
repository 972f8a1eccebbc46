import ArgumentParser
import Ferry
import FerryBluetooth
import Foundation
import TestSupport
import Testing

@testable import FerryTransports

/// When a program's channels are sealed.
@Suite(.tags(.program, .hostility)) struct TrustRequestTests {
    @Test func whatLeavesTheMachineIsSealedUnlessItIsSaidOtherwise() {
        var request = TrustRequest()
        #expect(request.isSealed(true) && !request.isSealed(false))
        request.sealing = .never
        #expect(!request.isSealed(true) && !request.isSealed(false))
        for ask in [\TrustRequest.code, \.peer, \.remember] as [WritableKeyPath<TrustRequest, String?>] {
            var request = TrustRequest()
            request[keyPath: ask] = "x"
            #expect(request.isSealed(false))
        }
        request = TrustRequest()
        request.codeOfEnvironment = "x"
        #expect(!request.isSealed(false))
    }

    @Test(arguments: ["--code", "--peer", "--remember", "--sealed"]) func plainTakesNoOptionOfASeal(_ option: String) {
        let arguments = ["--plain", option] + (option == "--sealed" ? [] : ["x"])
        let error = #expect(throws: (any Error).self) { try TrustOptions.parse(arguments) }
        #expect(error.map { TrustOptions.fullMessage(for: $0).contains("--plain seals nothing") } == true)
    }

    @Test(arguments: ["unix:/tmp/x", "tcp:127.0.0.1:7000", "tcp:localhost:7000", "loopback"])
    func whatStaysOnTheMachineIsPlain(_ text: String) throws {
        let named = try NamedTransport.parse(text, program: "ferry")
        #expect(!named.leavesMachine(false) && !named.leavesMachine(true))
    }

    @Test func aNetworkIsKnownByTheAddress() throws {
        let named = try NamedTransport.parse("tcp::7000", program: "ferry")
        #expect(!named.leavesMachine(false) && named.leavesMachine(true))
        #expect(try NamedTransport.parse("tcp:192.0.2.1:7000", program: "ferry").leavesMachine(false))
    }
}

#if Seal
    import FerrySeal

    /// The user's folder of keys, and what channels over a socket make of it.
    @Suite(.tags(.program, .hostility), .timeLimit(.minutes(5))) struct TrustFolderTests {
        private func inFolder(_ body: (String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("trust-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await body(path)
        }

        private func folder(_ path: String) -> TrustFolder { TrustFolder(environment: ["FERRY_HOME": path]) }

        @Test func theFolderIsWhereTheEnvironmentSays() {
            #expect(TrustFolder(environment: ["FERRY_HOME": "/a", "HOME": "/h"]).keyPath == "/a/key")
            #expect(TrustFolder(environment: ["XDG_CONFIG_HOME": "/x", "HOME": "/h"]).keyPath == "/x/ferry/key")
            #expect(
                TrustFolder(environment: ["FERRY_HOME": "", "HOME": "/h"]).trustedPath == "/h/.config/ferry/trusted")
            #expect(TrustFolder(identity: "k", trusted: "t", environment: [:]).keyPath == "k")
        }

        @Test func aKeyIsMadeOnceAndForItsOwnerAlone() async throws {
            try await inFolder { path in
                let folder = folder(path + "/new")
                let told = Journal()
                let key = try folder.key { told.add($0) }
                #expect(told.all == ["A new key is in \(path)/new/key."])
                #expect(try folder.key { told.add($0) } == key && told.all.count == 1)
                for (file, mode) in [("/new/key", 0o600), ("/new", 0o700)] {
                    let attributes = try FileManager.default.attributesOfItem(atPath: path + file)
                    #expect(attributes[.posixPermissions] as? Int == mode)
                }
                try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path + "/new/key")
                let error = #expect(throws: FerryError.self) { try folder.key { _ in } }
                #expect(error?.code == .sealUnsafeFile && error?.message.contains("others can read it") == true)
            }
        }

        @Test func theListKeepsItsCommentsAndOtherLines() async throws {
            try await inFolder { path in
                let folder = folder(path)
                let keys = (0..<3).map { _ in SecretKey().publicKey }
                try Data("# friends\n\(keys[0]) Anna\n\n# work".utf8).write(to: URL(filePath: path + "/trusted"))
                try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path + "/trusted")
                #expect(try folder.trust(keys[1], name: "press 7"))
                #expect(try !folder.trust(keys[1], name: "again"))
                #expect(try folder.key(named: "press 7") == keys[1])
                #expect(try folder.key(named: "\(keys[0].fingerprint.grouped)") == keys[0])
                #expect(try folder.key(named: "\(keys[2])") == keys[2])
                let unknown = #expect(throws: FerryError.self) { try folder.key(named: "nobody") }
                #expect(unknown?.message.contains("No trusted key has the name 'nobody'") == true)
                #expect(try folder.distrust(keys[0]) && !folder.distrust(keys[0]))
                let text = try String(contentsOfFile: path + "/trusted", encoding: .utf8)
                #expect(text == "# friends\n\n# work\n\(keys[1]) press 7\n")
                #expect(throws: FerryError.self) { try folder.trust(keys[2], name: "two\nlines") }
            }
        }

        /// Two processes, or two handshakes, use a code at once.
        @Test func aCodeIsUsedOnceAndNotAfterItsTime() async throws {
            try await inFolder { path in
                let folder = folder(path)
                let now = Date.now
                let code = try folder.invite(name: "anna", until: now + 3600)
                let late = try folder.invite(name: "late", until: now - 1)
                #expect(folder.invitations(at: now).map(\.invitation.code) == [code.code])
                #expect(folder.use(late.code, at: now) == nil)
                #expect(folder.use(code.code, at: now) == "anna" && folder.use(code.code, at: now) == nil)
                let open = try folder.invite(name: "", until: now + 3600)
                let file = try #require(
                    FileManager.default.contentsOfDirectory(atPath: path + "/invitations").first)
                let attributes = try FileManager.default.attributesOfItem(atPath: path + "/invitations/" + file)
                #expect(attributes[.posixPermissions] as? Int == 0o600)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o644], ofItemAtPath: path + "/invitations/" + file)
                #expect(folder.use(open.code, at: now) == nil)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: path + "/invitations/" + file)
                #expect(folder.clearInvitations() == 1 && folder.invitations(at: now).isEmpty)
            }
        }

        @Test func notMoreCodesWaitThanAHandshakeTries() async throws {
            try await inFolder { path in
                let folder = folder(path)
                for _ in 0..<TrustFolder.maximumInvitations { _ = try folder.invite(name: "", until: .now + 60) }
                let error = #expect(throws: FerryError.self) { try folder.invite(name: "", until: .now + 60) }
                #expect(error?.message.contains("ferry invite --clear") == true)
            }
        }

        // MARK: Over a socket

        /// Meets over a Unix socket as `near` and `far` say, sends a message each way, and returns who each side found, or its error.
        private func meet(
            _ path: String, near: TrustRequest, far: TrustRequest, tell: Journal = Journal()
        ) async throws -> (near: Result<PeerIdentity, FerryError>, far: Result<PeerIdentity, FerryError>) {
            let named = try NamedTransport.parse("unix:\(path)/s", program: "ferry")
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            func transport(_ request: TrustRequest) throws -> ProtectedTransport {
                ProtectedTransport(try named.open(layout, RadioOptions())("x"), named: named, request) { tell.add($0) }
            }
            let listener = try await transport(far).listen()
            defer { listener.close() }
            var connecting = near
            if connecting.code == "shown" {
                connecting.code = tell.all.compactMap { $0.split(separator: " --code ").last.map(String.init) }.last
            }
            let link = try await transport(connecting).connect(timeout: .unreached)
            var links = listener.links.makeAsyncIterator()
            let other = try #require(await links.next())
            func channel(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
                func open(_ framing: some Framing) throws -> MessageChannel<[UInt8], [UInt8]> {
                    try MessageChannel(over: link, codec: BytesCodec(), framing: framing)
                }
                return try open(ProtectedTransport.framing(LengthPrefixFraming(), over: link))
            }
            let (a, b) = (try channel(link), try channel(other))
            @Sendable func exchange(_ channel: MessageChannel<[UInt8], [UInt8]>) async -> Result<
                PeerIdentity, FerryError
            > {
                do throws(FerryError) {
                    try await channel.send([1])
                    var messages = channel.messages.makeAsyncIterator()
                    guard try await messages.next() == [1] else { throw FerryError(.disconnected, "nothing came") }
                    return .success(channel.peer)
                } catch { return .failure(channel.closeReason ?? error) }
            }
            async let first = exchange(a)
            async let second = exchange(b)
            let results = await (first, second)
            a.close()
            b.close()
            return results
        }

        private func request(_ path: String, _ change: (inout TrustRequest) -> Void = { _ in }) -> TrustRequest {
            var request = TrustRequest()
            request.sealing = .always
            (request.identity, request.trusted) = (path + "/key", path + "/trusted")
            change(&request)
            return request
        }

        private func identity(_ path: String) throws -> PeerIdentity {
            let key = try TrustFolder(identity: path + "/key").key { _ in }
            return PeerIdentity("\(key.publicKey.fingerprint)", certainty: .key)
        }

        @Test func theShownCodeBringsTwoStrangersTogether() async throws {
            try await inFolder { path in
                let (a, b) = (path + "/a", path + "/b")
                let both = try await meet(path, near: request(a) { $0.code = "shown" }, far: request(b))
                #expect(try both.near.get() == identity(b) && both.far.get() == identity(a))
                // One transfer, and no trust that lasts.
                #expect(try TrustFolder(trusted: a + "/trusted").trusted().entries.isEmpty)
                #expect(try TrustFolder(trusted: b + "/trusted").trusted().entries.isEmpty)
            }
        }

        @Test func aCodeThatIsRememberedIsNeededOnce() async throws {
            try await inFolder { path in
                let (a, b) = (path + "/a", path + "/b")
                _ = try await meet(
                    path,
                    near: request(a) {
                        $0.code = "shown"
                        $0.remember = "office"
                    }, far: request(b) { $0.remember = "anna" })
                let both = try await meet(path, near: request(a), far: request(b) { $0.showsCode = false })
                #expect(try both.near.get() == identity(b) && both.far.get() == identity(a))
                let pinned = try await meet(
                    path, near: request(a) { $0.peer = "office" }, far: request(b) { $0.peer = "anna" })
                #expect(try pinned.near.get() == identity(b) && pinned.far.get() == identity(a))
            }
        }

        @Test func aWrongCodeAndAnUnknownKeyAreToldAtBothEnds() async throws {
            try await inFolder { path in
                let (a, b) = (path + "/a", path + "/b")
                var both = try await meet(path, near: request(a) { $0.code = Invitation().code }, far: request(b))
                #expect(throws: FerryError.self) { try both.far.get() }
                guard case .failure(let near) = both.near, case .failure(let far) = both.far else { return }
                #expect(near.code == .sealNotAccepted && near.message.contains("Ask for a new code"), "\(near)")
                #expect(
                    far.code == .sealRefused && far.message.contains("one-time code is none that is good"), "\(far)")

                let theirs = try TrustFolder(identity: b + "/key").key { _ in }.publicKey
                _ = try TrustFolder(trusted: a + "/trusted").trust(theirs, name: "office")
                both = try await meet(path, near: request(a), far: request(b))
                guard case .failure(let near) = both.near, case .failure(let far) = both.far else {
                    Issue.record("a key that is not trusted was let in")
                    return
                }
                #expect(
                    near.code == .sealNotAccepted && near.message.contains("does not accept this side's key"), "\(near)"
                )
                #expect(far.code == .sealStranger && far.message.contains("is not allowed here"), "\(far)")
            }
        }

        @Test func nobodyIsConnectedToWithoutTrust() async throws {
            try await inFolder { path in
                let error = await #expect(throws: FerryError.self) {
                    _ = try await meet(path, near: request(path + "/a"), far: request(path + "/b"))
                }
                #expect(error?.message.contains("no key is trusted yet. Give --code") == true)
                let wrong = await #expect(throws: FerryError.self) {
                    _ = try await meet(
                        path, near: request(path + "/a") { $0.code = "12345" }, far: request(path + "/b"))
                }
                #expect(wrong?.code == .sealMalformedKey && wrong?.message.contains("12345") == false)
            }
        }

        /// What is changed in the list holds from the next handshake on, in a program that runs.
        @Test func aKeyThatIsRemovedIsRefusedAtOnce() async throws {
            try await inFolder { path in
                let folder = TrustFolder(trusted: path + "/trusted")
                let keys = TrustedKeys(path + "/trusted") { _ in }
                let key = SecretKey().publicKey
                #expect(!keys.allows(key))
                _ = try folder.trust(key, name: "a")
                #expect(keys.allows(key))
                _ = try folder.distrust(key)
                #expect(!keys.allows(key))
                _ = try folder.trust(key, name: "a")
                try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path + "/trusted")
                #expect(!keys.allows(key))
            }
        }

        @Test func aCodeIsShownAsAPictureWhereThereIsAProgram() async throws {
            try await inFolder { path in
                #expect(CodePicture.picture(of: "abc", path: path) == nil)
                let script = "#!/bin/sh\necho \"$@\"\ncat\n"
                try Data(script.utf8).write(to: URL(filePath: path + "/qrencode"))
                try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path + "/qrencode")
                let picture = try #require(CodePicture.picture(of: "abc-1", path: "\(path):/bin"))
                // The code is not an argument, which other users see.
                #expect(String(decoding: picture, as: UTF8.self) == "-t UTF8 -m 2 -o -\nABC-1")
            }
        }
    }
#endif
