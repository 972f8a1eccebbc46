#if NATS && Records
    import ArgumentParser
    import FerryNATS

    /// How commands that look at a fleet, or change it, reach its servers.
    struct NATSServerOptions: ParsableArguments {
        @Option(help: ArgumentHelp("A server, nats://HOST:4222; once for each of a cluster.", valueName: "address"))
        var nats: [String]
        @Option(help: ArgumentHelp("A NATS credentials file.", valueName: "file")) var credentials: String?
        @OptionGroup var certificates: NATSCertificateOptions

        /// - Parameter name: the connection's, for the server's log.
        func configuration(_ name: String) -> NATSConfiguration {
            var configuration = NATSConfiguration(servers: nats)
            configuration.name = name
            configuration.credentialsFile = credentials
            certificates.apply(to: &configuration)
            return configuration
        }
    }

    /// What TLS to the servers goes by.
    struct NATSCertificateOptions: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "A PEM file with who may sign the server's certificate; turns TLS on, as tls://HOST does.",
                valueName: "file"))
        var authorities: String?
        @Option(help: ArgumentHelp("A PEM file with this client's certificate, with --key.", valueName: "file"))
        var certificate: String?
        @Option(help: ArgumentHelp("A PEM file with the certificate's key.", valueName: "file")) var key: String?

        func validate() throws {
            guard (certificate == nil) == (key == nil) else {
                throw ValidationError("A client's certificate needs --certificate and --key; give both.")
            }
        }

        /// Sets the given values, and leaves the rest.
        func apply(to configuration: inout NATSConfiguration) {
            configuration.authoritiesFile = authorities ?? configuration.authoritiesFile
            configuration.certificateFile = certificate ?? configuration.certificateFile
            configuration.keyFile = key ?? configuration.keyFile
        }
    }
#endif
