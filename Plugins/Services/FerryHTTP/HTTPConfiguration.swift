#if HTTP
    public import Ferry
    import Foundation

    extension FerryError.Code {
        /// No server answers at the address.
        public static let httpNoServer = FerryError.Code("http.noServer")
        /// The server refuses the user, the token or the certificate.
        public static let httpRefused = FerryError.Code("http.refused")
        /// TLS could not be agreed upon, or a certificate is not trusted.
        public static let httpInsecure = FerryError.Code("http.insecure")
        /// Any other answer that is not a success.
        public static let httpFailed = FerryError.Code("http.failed")
    }

    /// How to reach an HTTP server that takes CloudEvents.
    public struct HTTPConfiguration: Sendable, Hashable {
        /// Where events are posted to, without user and password.
        public let url: String
        /// The address without what may be secret: user, password and query. For messages.
        public let publicAddress: String
        /// The user and password that the address had, for basic authentication (RFC 7617).
        let basic: String?
        /// What records are. JSON, that is `application/json` or a type that ends in `+json`, goes as JSON into the event; anything
        /// else, and data that is no JSON, in base64. Default `application/octet-stream`.
        public var contentType = "application/octet-stream"
        /// The events' type. Default `ferry.record`.
        public var eventType = "ferry.record"
        /// A file with a bearer token (RFC 6750), which is read when the outlet is opened.
        public var tokenFile: String?
        /// A PEM file with the authorities that may sign the server's certificate; the system's unless given.
        public var authoritiesFile: String?
        /// A PEM file with this client's certificate, where the server asks for one; with ``keyFile``.
        public var certificateFile: String?
        /// The PEM file of the certificate's key.
        public var keyFile: String?
        /// How long an answer may take, and setting up the connection. Default 10 s.
        public var timeout = Duration.seconds(10)
        /// The most records without an answer. Default 256.
        public var maximumInFlight = 256
        /// The most records of a request. Default 100.
        public var maximumBatch = 100
        /// The most bytes of a request's events, which are longer than the records; an event that is longer goes alone. Default
        /// 1 000 000.
        public var maximumBatchBytes = 1_000_000
        /// The most requests at once. Default 4.
        public var maximumRequests = 4

        /// Reads an address.
        ///
        /// - Parameter address: `https://HOST/PATH`, `http://USER:PASSWORD@HOST:8080/PATH?QUERY`; `%` and two digits stand for a byte in
        ///   user and password.
        /// - Throws: `invalidConfiguration` for any other text.
        public init(_ address: String) throws(FerryError) {
            func wrong(_ why: String) -> FerryError {
                FerryError(
                    .invalidConfiguration,
                    "The address of the HTTP server is wrong. \(why) Give one such as https://example.org/records.")
            }
            guard address.hasPrefix("http://") || address.hasPrefix("https://") else {
                throw wrong("It does not begin with http:// or https://.")
            }
            guard address.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), var parts = URLComponents(string: address)
            else { throw wrong("It has a character that must be written as % and two digits.") }
            guard let host = parts.host, !host.isEmpty else { throw wrong("It names no host.") }
            guard parts.fragment == nil else { throw wrong("It has a part after #.") }
            guard parts.port.map({ (1...65_535).contains($0) }) ?? true else {
                throw wrong("Its port is none; give 1 to 65535.")
            }
            if parts.user != nil || parts.password != nil {
                basic = Data("\(parts.user ?? ""):\(parts.password ?? "")".utf8).base64EncodedString()
            } else {
                basic = nil
            }
            parts.user = nil
            parts.password = nil
            guard let url = parts.string else { throw wrong("It cannot be read.") }
            self.url = url
            parts.query = nil
            publicAddress = parts.string ?? "\(parts.scheme ?? "http")://\(host)"
        }

        func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            for (name, value) in [("contentType", contentType), ("eventType", eventType)] {
                guard !value.isEmpty, value.utf8.count <= 256, value.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
                else { throw refuse("\(name) is \(value.debugDescription). Give visible ASCII, 256 bytes at most.") }
            }
            guard contentType.contains("/") else {
                throw refuse("contentType is \(contentType.debugDescription). Give one such as application/json.")
            }
            guard timeout >= .milliseconds(10), timeout <= .seconds(3600) else {
                throw refuse("The timeout is \(timeout). Give 10 ms to an hour.")
            }
            for (name, value, largest) in [
                ("maximumInFlight", maximumInFlight, 32_768), ("maximumBatch", maximumBatch, 10_000),
                ("maximumBatchBytes", maximumBatchBytes, 1 << 30), ("maximumRequests", maximumRequests, 256),
            ] {
                guard (1...largest).contains(value) else { throw refuse("\(name) is \(value). Give 1 to \(largest).") }
            }
            guard (certificateFile == nil) == (keyFile == nil) else {
                throw refuse("A client certificate needs certificateFile and keyFile; one of them is missing.")
            }
            guard basic == nil || tokenFile == nil else {
                throw refuse("The address has a user, and there is a token. Leave one of them out.")
            }
        }

        /// The header `Authorization`.
        func authorization() throws(FerryError) -> String? {
            guard let tokenFile else { return basic.map { "Basic \($0)" } }
            let text: String
            do { text = try String(contentsOfFile: tokenFile, encoding: .utf8) } catch {
                throw FerryError(
                    .invalidConfiguration, "The token's file \(tokenFile) cannot be read. Name one that can.")
            }
            let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw FerryError(
                    .invalidConfiguration,
                    "The file \(tokenFile) has no token: visible ASCII without a space, on one line.")
            }
            return "Bearer \(token)"
        }
    }
#endif
