#if Records
    import Ferry
    import FerryRecords
    import Foundation

    /// A device whose disk is full to the last byte, again and again: a store on it opens, lists, and makes room by sending.
    ///
    /// Prints what it has seen, a line each; whatever fails ends the process.
    struct SmallDisk {
        /// On the small disk.
        let folder: String
        /// On another one.
        let other: String
        private var path: String { folder + "/a" }
        private var ballast: String { folder + "/ballast" }

        func run() async throws {
            var accepted = 0
            for round in 1...3 {
                var store = try RecordStore.open(path)
                var refused = 0
                // Others' files are on the disk too from the second round on.
                if round > 1 { fill(leaving: 300 << 10) }
                while refused < 3 {
                    let error = await append(accepted, to: store, bytes: round == 3 ? 30_000 : 1000)
                    guard let error else {
                        accepted += 1
                        continue
                    }
                    guard error.code == .diskFull else { throw error }
                    refused += 1
                }
                fill(leaving: 0)
                if round == 2 { _ = try await store.expire() }
                await store.close()
                // Closing has given the log's room back; somebody else takes it.
                fill(leaving: 0)
                store = try RecordStore.open(path)
                let waiting = try await store.waiting().reduce(0) { $0 + $1.count }
                say("round \(round): full with \(waiting) waiting, \(free()) bytes free")
                try await drain(store)
                say("round \(round): drained, \(free()) bytes free")
                unlink(ballast)
                if let error = await append(accepted, to: store, bytes: 1000) { throw error }
                accepted += 1
                try await drain(store)
                await store.close()
            }
            say("accepted \(accepted)")
            let far = try RecordStore.open(other + "/b")
            say("arrived \(try await far.undone())")
            await far.close()
        }

        private func say(_ text: String) { RecordsWorker.say(text) }

        private func append(_ number: Int, to store: RecordStore, bytes: Int) async -> FerryError? {
            do throws(FerryError) {
                let text = Array("\(number) ".utf8)
                let filling = [UInt8](repeating: 46, count: bytes - text.count)
                try await store.append(text + filling, to: "peer", stream: RecordsWorker.stream(of: number))
                return nil
            } catch { return error }
        }

        private func drain(_ store: RecordStore) async throws {
            var configuration = RecordStore.Configuration()
            configuration.inboxCapacity = 1 << 30
            let far = try RecordStore.open(other + "/b", configuration: configuration)
            let (near, away) = PacketLink.pair(maximumChunkSize: 8000)
            let channels = (
                try MessageChannel(over: near, codec: BytesCodec()), try MessageChannel(over: away, codec: BytesCodec())
            )
            async let here = store.exchange(over: channels.0, with: "peer", endingWhenIdle: .milliseconds(500))
            async let there = far.exchange(over: channels.1, with: "device", endingWhenIdle: .seconds(60))
            _ = try await here
            _ = try? await there
            let left = try await store.waiting().reduce(0) { $0 + $1.count }
            guard left == 0 else { throw FerryError(.timedOut, "\(left) records still wait.") }
            await far.close()
        }

        /// Takes all of the disk but this many bytes.
        private func fill(leaving rest: Int) {
            let descriptor = Foundation.open(ballast, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            for size in [65_536, 4096, 1] {
                let bytes = [UInt8](repeating: 0xFE, count: size)
                while free() > rest, write(descriptor, bytes, size) == size {}
            }
            close(descriptor)
        }

        private func free() -> Int {
            var status = statvfs()
            guard statvfs(folder, &status) == 0 else { return 0 }
            return Int(status.f_bavail) * Int(status.f_frsize)
        }
    }
#endif
