#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryRecords

    /// One gateway that publishes what is in a store, in a process that does nothing else. It prints records a second.
    struct Publishing {
        let server: String
        let store: String
        let stream: String
        let count: Int
        /// Which of ``Observers/all``, if any.
        let observer: Int?

        /// From the begin of a gateway until the stream has answered for all.
        func run() async throws {
            let store = try RecordStore.open(store, configuration: Pair.configuration)
            let gateway = try Gateway(
                store, Gateway.Configuration(servers: [server], name: "bench", stream: stream, prefix: stream),
                observer: observer.map { Observers.all[$0].make() })
            let end = ContinuousClock.now + .seconds(120)
            let running = Task {
                do throws(FerryError) { try await gateway.run() } catch  where error.code != .cancelled {
                    GatewayBench.say("the gateway has ended: \(error.message)")
                } catch {}
            }
            let rate = try await GatewayBench.rate(of: count) {
                while true {
                    let status = try await gateway.status()
                    guard status.published < count else { return }
                    guard ContinuousClock.now < end else { throw Failure(text: status.trouble ?? "too slow") }
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            running.cancel()
            await running.value
            await store.close()
            GatewayBench.say("\(rate)")
        }
    }
#endif
