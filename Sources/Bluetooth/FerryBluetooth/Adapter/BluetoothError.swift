/// What an adapter could not do, where, and what to do about it.
public struct BluetoothError: Error, Sendable {
    /// The kind of failure. A struct, so that kinds can be added without breaking a caller.
    public let code: Code
    /// The defect, its place and the remedy.
    public let message: String

    /// Made by adapters.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The kinds of failure.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        /// The code's name, as printed in errors.
        public let description: String
        private init(_ name: String) {
            description = name
            attError = nil
        }

        /// The adapter is not powered on; see ``AdapterState``.
        public static let notPoweredOn = Code("notPoweredOn")
        /// The peer is not known, or not in range.
        public static let unknownPeer = Code("unknownPeer")
        /// The peer is not connected (any more).
        public static let notConnected = Code("notConnected")
        /// The connection could not be made.
        public static let connectionFailed = Code("connectionFailed")
        /// The attribute is not known here, or has been withdrawn.
        public static let unknownAttribute = Code("unknownAttribute")
        /// A definition or argument is outside its legal range.
        public static let invalidArgument = Code("invalidArgument")
        /// The attribute does not have the property that is needed.
        public static let notSupported = Code("notSupported")
        /// The value is longer than the connection carries at once.
        public static let valueTooLong = Code("valueTooLong")
        /// The peer answered with an ATT error.
        public static func att(_ error: ATTError) -> Code {
            Code("att(0x" + String(error.rawValue, radix: 16, uppercase: true) + ")", error)
        }
        /// Advertising is refused or in use.
        public static let advertisingFailed = Code("advertisingFailed")
        /// The peer refused the L2CAP channel.
        public static let channelRefused = Code("channelRefused")
        /// A deadline passed.
        public static let timedOut = Code("timedOut")
        /// The calling task was cancelled.
        public static let cancelled = Code("cancelled")
        /// The connection ended because this side asked for it.
        public static let disconnectedLocally = Code("disconnectedLocally")
        /// The connection ended because the peer asked for it.
        public static let disconnectedByPeer = Code("disconnectedByPeer")
        /// The connection ended because nothing was heard of the peer for the supervision timeout.
        public static let connectionTimeout = Code("connectionTimeout")
        /// Something of which there is a limited number, such as the PSMs of an adapter, is used up.
        public static let outOfResources = Code("outOfResources")
        /// The role object has been closed.
        public static let roleClosed = Code("roleClosed")

        /// The ATT error inside, if the code is one.
        public let attError: ATTError?
        private init(_ name: String, _ error: ATTError) {
            description = name
            attError = error
        }
    }
}

extension BluetoothError: CustomStringConvertible {
    /// The message and the code.
    public var description: String { "\(message) [\(code)]" }
}
