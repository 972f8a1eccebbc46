#if NATS && Records
    import FerryGateway

    #if Observability
        import FerryObservability
        import Logging
    #endif

    /// Who is told what the gateway does, while it is measured.
    enum Observers {
        private struct Deaf: GatewayObserver {
            func observe(_ event: GatewayEvent) {}
        }

        static var all: [(name: String, make: @Sendable () -> any GatewayObserver)] {
            var all: [(name: String, make: @Sendable () -> any GatewayObserver)] = [
                ("gateway, with an observer that does nothing", { Deaf() })
            ]
            #if Observability
                // Nobody takes what comes of it: it is Ferry's part.
                all.append(
                    (
                        "gateway, with logs at info, metrics, and traces of one record in 100",
                        {
                            GatewayObservers([
                                LoggingObserver(
                                    Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }, gateway: "bench"),
                                MetricsObserver(), TracingObserver(gateway: "bench", sampling: .oneIn(100)),
                            ])
                        }
                    ))
            #endif
            return all
        }
    }
#endif
