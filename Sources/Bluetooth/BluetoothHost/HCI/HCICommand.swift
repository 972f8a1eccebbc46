/// An HCI command's opcode (Core Specification 5.4, Vol 4, Part E, 7), with its place in the controller's bit mask of
/// supported commands (6.27).
struct Opcode: Hashable, Sendable {
    let rawValue: UInt16
    /// Octet and bit in the answer to Read Local Supported Commands; nil for commands that every controller has.
    let supportBit: (octet: Int, bit: Int)?

    init(_ rawValue: UInt16, _ octet: Int? = nil, _ bit: Int = 0) {
        self.rawValue = rawValue
        supportBit = octet.map { ($0, bit) }
    }

    static func == (a: Opcode, b: Opcode) -> Bool { a.rawValue == b.rawValue }
    func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

    static let disconnect = Opcode(0x0406)
    static let setEventMask = Opcode(0x0C01)
    static let reset = Opcode(0x0C03)
    static let writeLEHostSupport = Opcode(0x0C6D, 24, 6)
    static let readLocalVersion = Opcode(0x1001)
    static let readLocalSupportedCommands = Opcode(0x1002)
    static let readLocalSupportedFeatures = Opcode(0x1003)
    static let readBufferSize = Opcode(0x1005, 14, 7)
    static let readBDADDR = Opcode(0x1009)
    static let readRSSI = Opcode(0x1405, 15, 5)
    static let leSetEventMask = Opcode(0x2001)
    static let leReadBufferSize = Opcode(0x2002)
    static let leReadLocalSupportedFeatures = Opcode(0x2003)
    static let leSetRandomAddress = Opcode(0x2005)
    static let leSetAdvertisingParameters = Opcode(0x2006, 25, 5)
    static let leSetAdvertisingData = Opcode(0x2008, 25, 7)
    static let leSetScanResponseData = Opcode(0x2009, 26, 0)
    static let leSetAdvertisingEnable = Opcode(0x200A, 26, 1)
    static let leSetScanParameters = Opcode(0x200B, 26, 2)
    static let leSetScanEnable = Opcode(0x200C, 26, 3)
    static let leCreateConnection = Opcode(0x200D, 26, 4)
    static let leCreateConnectionCancel = Opcode(0x200E, 26, 5)
    static let leReadFilterAcceptListSize = Opcode(0x200F, 26, 6)
    static let leClearFilterAcceptList = Opcode(0x2010, 26, 7)
    static let leAddDeviceToFilterAcceptList = Opcode(0x2011, 27, 0)
    static let leConnectionUpdate = Opcode(0x2013, 27, 2)
    static let leEnableEncryption = Opcode(0x2019, 28, 0)
    static let leLongTermKeyRequestReply = Opcode(0x201A, 28, 1)
    static let leLongTermKeyRequestNegativeReply = Opcode(0x201B, 28, 2)
    static let leRemoteConnectionParameterRequestReply = Opcode(0x2020, 33, 4)
    static let leRemoteConnectionParameterRequestNegativeReply = Opcode(0x2021, 33, 5)
    static let leSetDataLength = Opcode(0x2022, 33, 6)
    static let leWriteSuggestedDefaultDataLength = Opcode(0x2024, 34, 0)
    static let leReadMaximumDataLength = Opcode(0x202F, 35, 3)
    static let leSetDefaultPHY = Opcode(0x2031, 35, 5)
    static let leSetPHY = Opcode(0x2032, 35, 6)
    static let leSetAdvertisingSetRandomAddress = Opcode(0x2035, 36, 1)
    static let leSetExtendedAdvertisingParameters = Opcode(0x2036, 36, 2)
    static let leSetExtendedAdvertisingData = Opcode(0x2037, 36, 3)
    static let leSetExtendedScanResponseData = Opcode(0x2038, 36, 4)
    static let leAddDeviceToResolvingList = Opcode(0x2027, 34, 3)
    static let leClearResolvingList = Opcode(0x2029, 34, 5)
    static let leReadResolvingListSize = Opcode(0x202A, 34, 6)
    static let leSetAddressResolutionEnable = Opcode(0x202D, 35, 1)
    static let leSetPrivacyMode = Opcode(0x204E, 39, 2)
    static let leSetExtendedAdvertisingEnable = Opcode(0x2039, 36, 5)
    static let leRemoveAdvertisingSet = Opcode(0x203C, 37, 0)
    static let leSetExtendedScanParameters = Opcode(0x2041, 37, 5)
    static let leSetExtendedScanEnable = Opcode(0x2042, 37, 6)
    static let leExtendedCreateConnection = Opcode(0x2043, 37, 7)
    static let leReadBufferSizeV2 = Opcode(0x2060, 41, 5)
}

extension Opcode: CustomStringConvertible {
    /// For messages: Opcode Group Field and Opcode Command Field as the specification writes them.
    var description: String {
        "HCI command 0x\(String(rawValue, radix: 16)) (OGF 0x\(String(rawValue >> 10, radix: 16)), "
            + "OCF 0x\(String(rawValue & 0x3FF, radix: 16)))"
    }
}

/// What a command was sent for, so that its result finds its way back.
enum CommandPurpose: Sendable, Equatable {
    case bringUp(BringUpStep)
    case advertising(generation: UInt32, isLast: Bool)
    case stopAdvertising
    case scanning(isLast: Bool)
    case filterAcceptList
    case privateAddress(Address)
    case resolvingList
    case connect
    case cancelConnect
    case disconnect(connection: UInt16)
    case readRSSI(connection: UInt16)
    case connectionUpdate(connection: UInt16)
    case encrypt(connection: UInt16)
    /// Answers the controller.
    case reply
    /// Improves a connection; a refusal changes nothing.
    case tuning

    /// Whether the host does without it where a controller does not answer it, although it says that it knows it.
    var isOptional: Bool {
        switch self {
        case .tuning, .readRSSI, .resolvingList: true
        case .bringUp(let step): !step.isRequired
        default: false
        }
    }
}

/// A command with its parameters, ready to be sent.
struct HCICommand: Sendable {
    let opcode: Opcode
    let parameters: [UInt8]
    let purpose: CommandPurpose

    init(_ opcode: Opcode, for purpose: CommandPurpose, _ build: (inout [UInt8]) -> Void = { _ in }) {
        self.opcode = opcode
        self.purpose = purpose
        var parameters: [UInt8] = []
        build(&parameters)
        self.parameters = parameters
    }

    /// Appends the H4 packet.
    func write(into output: inout [UInt8]) {
        output.append(H4PacketType.command.rawValue)
        output.append(u16: opcode.rawValue)
        output.append(UInt8(truncatingIfNeeded: parameters.count))
        output += parameters
    }
}
