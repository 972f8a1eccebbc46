#if NATS && Records
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import TestSupport

    extension LeaseKeeper.Configuration {
        /// Leases of short times, so that nobody waits long for one to be over. A machine that stands for longer loses leases, and
        /// nothing else.
        init(short name: String, _ server: NATSServer) {
            self.init(servers: [server.url], name: name, bucket: "leases")
            policy.timeToLive = .seconds(3)
            policy.serverSkew = .milliseconds(50)
            policy.stopping = .milliseconds(500)
            policy.requestTimeout = .milliseconds(800)
            policy.poll = .milliseconds(300)
            policy.spread = .milliseconds(200)
            policy.reservation = .milliseconds(300)
            servers.connectTimeout = .unreached
            servers.reconnectDelay = .milliseconds(20)
        }
    }
#endif
