/// What a controller said of itself during bring-up.
public struct ControllerInfo: Sendable, Hashable {
    /// Version of the HCI, as an assigned number: 6 is 4.0, 13 is 5.4.
    public internal(set) var hciVersion: UInt8 = 0
    /// The manufacturer's company identifier.
    public internal(set) var manufacturer: UInt16 = 0
    /// The public address; all zero when the controller has none.
    public internal(set) var publicAddress = Address(0, .public)
    /// LE features, bit by bit (Core Specification 5.4, Vol 6, Part B, 4.6).
    public internal(set) var leFeatures: UInt64 = 0
    /// BR/EDR features, page 0 (Vol 2, Part C, 3.3).
    public internal(set) var features: UInt64 = 0
    /// Payload bytes that one ACL packet to the controller may have.
    public internal(set) var aclPacketLength = 27
    /// ACL packets that the controller can hold.
    public internal(set) var aclPacketCount = 1
    /// Longest link layer payload the controller sends, in octets, and the time it takes, in microseconds.
    public internal(set) var maximumTransmitOctets: UInt16 = 27
    /// The time that the longest payload takes, in microseconds.
    public internal(set) var maximumTransmitTime: UInt16 = 328
    /// Peers that the filter accept list is given, at most; 0 where it cannot be used.
    public internal(set) var filterAcceptListSize = 0
    /// Peers whose keys the controller's resolving list holds; 0 where it cannot be used.
    public internal(set) var resolvingListSize = 0
    /// The mask of supported commands (Vol 4, Part E, 6.27).
    public internal(set) var supportedCommands: [UInt8] = []

    init() {}

    func supports(_ opcode: Opcode) -> Bool {
        guard let (octet, bit) = opcode.supportBit else { return true }
        return octet < supportedCommands.count && supportedCommands[octet] >> UInt8(bit) & 1 == 1
    }

    /// Takes the controller's word for a command back.
    mutating func doWithout(_ opcode: Opcode) {
        guard let (octet, bit) = opcode.supportBit, octet < supportedCommands.count else { return }
        supportedCommands[octet] &= ~(1 << UInt8(bit))
    }

    /// Whether the controller resolves peers' private addresses (Vol 6, Part B, 6).
    var hasResolvingList: Bool {
        [
            Opcode.leReadResolvingListSize, .leClearResolvingList, .leAddDeviceToResolvingList,
            .leSetAddressResolutionEnable,
        ].allSatisfy(supports)
    }

    /// Whether encryption is a feature of the controller's link layer.
    public var hasEncryption: Bool { leFeatures & 1 << 0 != 0 }
    /// Whether the host can have links encrypted.
    var canEncrypt: Bool {
        hasEncryption
            && [Opcode.leEnableEncryption, .leLongTermKeyRequestReply, .leLongTermKeyRequestNegativeReply]
                .allSatisfy(supports)
    }
    /// Whether the link layer negotiates connection parameters by itself.
    public var hasConnectionParameterRequest: Bool { leFeatures & 1 << 1 != 0 }
    /// Whether packets of up to 251 octets can be agreed on.
    public var hasDataLengthExtension: Bool { leFeatures & 1 << 5 != 0 }
    /// Whether there is the 2 Mbit/s physical layer.
    public var has2MPHY: Bool { leFeatures & 1 << 8 != 0 }

    /// Whether there is the coded physical layer, for long distances.
    public var hasCodedPHY: Bool { leFeatures & 1 << 11 != 0 }

    /// Whether to use the extended commands for advertising, scanning and connecting. One kind is used throughout: a
    /// controller refuses a mixture (Core Specification 5.4, Vol 4, Part E, 3.1.1).
    public var usesExtendedAdvertising: Bool {
        leFeatures & 1 << 12 != 0
            && [
                Opcode.leSetExtendedAdvertisingParameters, .leSetExtendedAdvertisingData,
                .leSetExtendedAdvertisingEnable, .leSetExtendedScanParameters, .leSetExtendedScanEnable,
                .leExtendedCreateConnection,
            ].allSatisfy(supports)
    }
}
