#if NATS && Records && Seal
    import Ferry
    import FerrySeal
    import FerryTransports
    import Foundation
    import TestSupport

    @testable import FerryCommand
    @testable import FerryRecords

    /// A gateway's key, a victim's and an attacker's, which trust one another, and sockets by which they meet.
    final class AttackRig: Sendable {
        /// The sockets of a case.
        enum Place: Int, CaseIterable, Sendable { case unix, tcp }

        let folder: String
        private let place: Place
        private let port: Int
        private let keys: [String: PublicKey]

        /// - Parameter port: the first of ten that no other test of this process uses.
        init(_ place: Place, port: Int) throws {
            (self.place, self.port) = (place, port)
            let folder = FileManager.default.temporaryDirectory.appending(path: "at-\(UUID().uuidString.prefix(8))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            self.folder = folder.path()
            var keys: [String: PublicKey] = [:]
            for name in ["gateway", "victim", "mallory"] {
                keys[name] = try TrustFolder(identity: "\(folder.path())/\(name)").key { _ in }.publicKey
            }
            let list = TrustFolder(trusted: "\(folder.path())/trusted")
            for (name, key) in keys { _ = try list.trust(key, name: name) }
            self.keys = keys
        }

        deinit { try? FileManager.default.removeItem(atPath: folder) }

        /// The fingerprint of a key.
        func fingerprint(_ name: String) -> String { keys[name]?.fingerprint.description ?? "" }

        /// Where the gateway, or the peer, `number` listens.
        func address(_ number: Int = 0) -> String {
            switch place {
            case .unix: "unix:\(folder)/s\(number)"
            case .tcp: "tcp:\(OwnAddress.text):\(port + number)"
            }
        }

        /// A transport as the commands open it; sealed with the key of `name`, or plain without.
        func transport(_ name: String?, at number: Int = 0) throws -> any Transport {
            var request = TrustRequest()
            request.showsCode = false
            if let name {
                request.sealing = .always
                (request.identity, request.trusted) = ("\(folder)/\(name)", "\(folder)/trusted")
            } else {
                request.sealing = .never
            }
            return try TransferOptions.open(try TransferOptions.parse(address(number)), name ?? "stranger", request)
        }

        /// A store as `ferry gateway` opens one: with records that a nats-server takes.
        func store(_ name: String) throws -> RecordStore {
            var configuration = RecordStore.Configuration()
            configuration.largestRecord = 1_000_000
            // Who waits for a gateway does not give up before the test does, however busy the machine.
            if name != "gateway" { (configuration.greeting, configuration.patience) = (.unreached, .unreached) }
            return try RecordStore.open("\(folder)/\(name).store", configuration: configuration)
        }

        /// A gateway's hub: it lets in the keys of the list.
        func hub(_ store: RecordStore, at number: Int = 0) throws -> Task<Void, any Error> {
            store.decideTrust { $0.certainty == .key ? .trusted : RecordStore.Trust($0) }
            let hub = try RecordHub(
                store, over: try transport("gateway", at: number),
                channel: { link throws(FerryError) in try RecordsChannel.open(over: link) { $0 } })
            return Task { try await hub.run() }
        }

        /// A channel to what listens, as soon as it does.
        func channel(_ name: String, at number: Int = 0) async throws -> MessageChannel<[UInt8], [UInt8]> {
            let transport = try transport(name, at: number)
            var link: (any Link)?
            try await until("\(address(number)) answers") {
                link = try? await transport.connect(timeout: .seconds(5))
                return link != nil
            }
            guard let link else { throw NotYet("there is no link") }
            return try RecordsChannel.open(over: link) { $0 }
        }

        /// Exchanges of an honest store until nothing waits in it.
        func visit(_ store: RecordStore, as name: String = "victim", at number: Int = 0) async throws {
            try await until("\(name)'s records are at the gateway") {
                let channel = try await channel(name, at: number)
                _ = try? await store.exchange(over: channel, with: "gateway", endingWhenIdle: .milliseconds(100))
                return try await store.waiting().allSatisfy { $0.count == 0 }
            }
        }

        /// Takes records out of an inbox, as `peer: text`.
        func take(_ count: Int, from store: RecordStore) async throws -> [String] {
            var texts: [String] = []
            for try await record in store.inbox {
                texts.append("\(record.peer): \(String(decoding: record.bytes, as: UTF8.self))")
                try await record.done()
                if texts.count == count { break }
            }
            return texts
        }
    }

    /// What an attacker does: it says any bytes of the records protocol over a channel of its own key.
    struct Attacker: Sendable {
        let channel: MessageChannel<[UInt8], [UInt8]>

        /// Greets as the store `id`, in an opening of the attacker's choice.
        func greet(as id: StoreID, _ epoch: Epoch = Epoch(generation: 1, nonce: 7)) async throws {
            let hello = RecordsMessage.Hello(store: id, epoch: epoch, largestRecord: 1 << 20)
            for message in [RecordsMessage.hello(hello), .met(seen: epoch, granted: 1 << 40)] {
                try await channel.send(message.encoded)
            }
        }

        /// Sends one record as number `sequence` of the stream without a name, and waits until it is on the other's disk.
        func forge(_ text: String, _ sequence: UInt64, _ epoch: Epoch) async throws {
            try await channel.send(RecordsMessage.open(index: 0, name: "", acknowledged: nil).encoded)
            let item = RecordsMessage.Item(sequence: sequence, bytes: Array(text.utf8))
            var messages = channel.messages.makeAsyncIterator()
            while let bytes = try await messages.next() {
                switch try RecordsMessage(bytes) {
                case .position:
                    let records = RecordsMessage.records(index: 0, epoch: epoch, previous: 0, [item])
                    try await channel.send(records.encoded)
                case .committed(_, let through) where through.contains { $0.sequence == sequence }: return
                default: break
                }
            }
            throw NotYet("the exchange ended before the record was taken")
        }

        /// All that the other side says until the channel ends.
        func heard() async -> [RecordsMessage] {
            var heard: [RecordsMessage] = []
            var messages = channel.messages.makeAsyncIterator()
            while let bytes = try? await messages.next(), let message = try? RecordsMessage(bytes) {
                heard.append(message)
            }
            return heard
        }
    }
#endif
