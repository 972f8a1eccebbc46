#if MQTT
    public import Ferry
    import FerryFleet

    extension FerryError.Code {
        /// No broker answers at the address.
        public static let mqttNoServer = FerryError.Code("mqtt.noServer")
        /// The broker refuses the user, the password, or what they do not permit.
        public static let mqttRefused = FerryError.Code("mqtt.refused")
        /// TLS could not be agreed upon, or a certificate is not trusted.
        public static let mqttInsecure = FerryError.Code("mqtt.insecure")
        /// Anything else that the broker or libmosquitto refuses.
        public static let mqttFailed = FerryError.Code("mqtt.failed")
    }

    /// How to reach an MQTT broker.
    public struct MQTTConfiguration: Sendable, Hashable {
        /// A name or an address.
        public var host: String
        /// The port: 1883 for `mqtt`, 8883 for `mqtts`.
        public var port: UInt16
        /// Whether to use TLS.
        public var isSecure: Bool
        /// The user; `nil` for none.
        public var user: String?
        /// The password.
        public var password: String?
        /// What topics begin with: levels of letters, digits, `-` and `_`, with `/` between them. Default `ferry/records`.
        public var prefix = "ferry/records"
        /// The client's name, which must be the broker's only one of this name. Default `ferry`.
        public var clientID = "ferry"
        /// A PEM file with the authorities that may sign the broker's certificate; the system's unless given.
        public var authoritiesFile: String?
        /// A PEM file with this client's certificate, where the broker asks for one; with ``keyFile``.
        public var certificateFile: String?
        /// The PEM file of the certificate's key.
        public var keyFile: String?
        /// How long an answer may take, and setting up the connection. Default 10 s.
        public var timeout = Duration.seconds(10)
        /// The most messages without an answer, those included whose time is over. Default 256.
        public var maximumInFlight = 256
        /// What Home Assistant is told of the records; nil for nothing.
        public var homeAssistant: HomeAssistant?

        /// Reads an address.
        ///
        /// - Parameter address: `mqtt://HOST`, `mqtts://USER:PASSWORD@HOST:8883`; `%` and two digits stand for a byte in user and
        ///   password.
        /// - Throws: `invalidConfiguration` for any other text.
        public init(_ address: String) throws(FerryError) {
            let text: Substring
            switch address {
            case _ where address.hasPrefix("mqtt://"): (isSecure, text) = (false, address.dropFirst(7))
            case _ where address.hasPrefix("mqtts://"): (isSecure, text) = (true, address.dropFirst(8))
            default: throw Self.wrong("It does not begin with mqtt:// or mqtts://.")
            }
            var place = text
            if let at = text.lastIndex(of: "@") {
                place = text[text.index(after: at)...]
                let parts = text[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                user = try Self.plain(parts[0])
                password = parts.count > 1 ? try Self.plain(parts[1]) : nil
            }
            if place.last == "/" { place = place.dropLast() }
            port = isSecure ? 8883 : 1883
            let end = place.lastIndex(of: "]").map(place.index(after:)) ?? place.startIndex
            if let colon = place[end...].lastIndex(of: ":") {
                guard let number = UInt16(place[place.index(after: colon)...]), number > 0 else {
                    throw Self.wrong("Its port is none; give 1 to 65535.")
                }
                port = number
                place = place[..<colon]
            }
            if place.hasPrefix("["), place.hasSuffix("]") { place = place.dropFirst().dropLast() }
            guard !place.isEmpty, place.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2F }) else {
                throw Self.wrong("It names no host.")
            }
            host = String(place)
        }

        /// The address without user and password, for messages.
        public var publicAddress: String {
            "\(isSecure ? "mqtts" : "mqtt")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }

        private static func wrong(_ why: String) -> FerryError {
            FerryError(
                .invalidConfiguration,
                "The address of the MQTT broker is wrong. \(why) Give one such as mqtt://localhost:1883.")
        }

        private static func plain(_ text: Substring) throws(FerryError) -> String {
            var bytes: [UInt8] = []
            var rest = Array(text.utf8)[...]
            while let byte = rest.popFirst() {
                guard byte == 0x25 else {
                    bytes.append(byte)
                    continue
                }
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                    let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16), value > 0
                else { throw wrong("A % in its user or password is not followed by two digits; write % as %25.") }
                bytes.append(value)
                rest = rest.dropFirst(2)
            }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw wrong("Its user or password is no UTF-8.")
            }
            return text
        }

        /// Whether it is levels of letters, digits, `-` and `_`, with `/` between them, of fewer than 1 000 bytes.
        static func canBeginTopics(_ prefix: String) -> Bool {
            let levels = prefix.split(separator: "/", omittingEmptySubsequences: false)
            return levels.allSatisfy { !$0.isEmpty && OutletAddress.level(String($0)) == $0 }
                && prefix.utf8.count < 1000
        }

        func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            guard Self.canBeginTopics(prefix) else {
                throw refuse(
                    "\(prefix.debugDescription) cannot begin topics. Use levels of letters, digits, - and _, with / between them."
                )
            }
            guard !clientID.isEmpty, clientID.utf8.count <= 256, !clientID.utf8.contains(0) else {
                throw refuse("The client has no name, or one of more than 256 bytes. Give it one.")
            }
            guard timeout >= .milliseconds(10), timeout <= .seconds(3600) else {
                throw refuse("The timeout is \(timeout). Give 10 ms to an hour.")
            }
            guard (1...32_768).contains(maximumInFlight) else {
                throw refuse("maximumInFlight is \(maximumInFlight). Give 1 to 32768.")
            }
            guard (certificateFile == nil) == (keyFile == nil) else {
                throw refuse("A client certificate needs certificateFile and keyFile; one of them is missing.")
            }
            try homeAssistant?.check()
        }
    }
#endif
