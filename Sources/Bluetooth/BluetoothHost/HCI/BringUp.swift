/// The commands that make a controller ready, in order (Core Specification 5.4, Vol 4, Part E, 7.3, 7.4, 7.8).
///
/// What a step asks decides which later steps apply, so that a controller is sent only commands it says it has.
enum BringUpStep: Int, Sendable, CaseIterable {
    case reset
    case version
    case commands
    case features
    case publicAddress
    case leFeatures
    case leBufferSize
    case leBufferSizeV2
    case bufferSize
    case eventMask
    case leEventMask
    case leHostSupport
    case maximumDataLength
    case suggestedDataLength
    case defaultPHY
    case filterAcceptListSize
    case resolvingListSize
    case randomAddress

    /// Whether `controller` needs this step and can do it.
    func applies(to controller: ControllerInfo) -> Bool {
        switch self {
        case .leBufferSizeV2: controller.supports(.leReadBufferSizeV2)
        case .leBufferSize: !controller.supports(.leReadBufferSizeV2)
        // No buffers of LE's own: it shares those of BR/EDR (7.8.2).
        case .bufferSize: controller.aclPacketLength == 0 || controller.aclPacketCount == 0
        case .leHostSupport:
            // Feature bit 37 "BR/EDR not supported", bit 38 "LE supported (controller)" (Vol 2, Part C, 3.3).
            controller.features >> 37 & 1 == 0 && controller.supports(.writeLEHostSupport)
        case .maximumDataLength:
            controller.hasDataLengthExtension && controller.supports(.leReadMaximumDataLength)
        case .suggestedDataLength:
            controller.hasDataLengthExtension && controller.supports(.leWriteSuggestedDefaultDataLength)
        case .filterAcceptListSize:
            [Opcode.leReadFilterAcceptListSize, .leClearFilterAcceptList, .leAddDeviceToFilterAcceptList]
                .allSatisfy(controller.supports)
        case .resolvingListSize: controller.hasResolvingList
        case .defaultPHY: controller.has2MPHY && controller.supports(.leSetDefaultPHY)
        default: true
        }
    }

    /// Whether a controller that refuses the step cannot be used.
    var isRequired: Bool {
        switch self {
        case .reset, .leFeatures, .leBufferSize, .leBufferSizeV2, .eventMask, .leEventMask, .randomAddress: true
        default: false
        }
    }

    func command(for controller: ControllerInfo, randomAddress: Address) -> HCICommand {
        let purpose = CommandPurpose.bringUp(self)
        switch self {
        case .reset: return HCICommand(.reset, for: purpose)
        case .version: return HCICommand(.readLocalVersion, for: purpose)
        case .commands: return HCICommand(.readLocalSupportedCommands, for: purpose)
        case .features: return HCICommand(.readLocalSupportedFeatures, for: purpose)
        case .publicAddress: return HCICommand(.readBDADDR, for: purpose)
        case .leFeatures: return HCICommand(.leReadLocalSupportedFeatures, for: purpose)
        case .leBufferSize: return HCICommand(.leReadBufferSize, for: purpose)
        case .leBufferSizeV2: return HCICommand(.leReadBufferSizeV2, for: purpose)
        case .bufferSize: return HCICommand(.readBufferSize, for: purpose)
        case .eventMask: return HCICommand(.setEventMask, for: purpose) { $0.append(u64: Self.eventMaskBits) }
        case .leEventMask:
            return HCICommand(.leSetEventMask, for: purpose) { $0.append(u64: Self.leEventMaskBits(controller)) }
        case .leHostSupport: return HCICommand(.writeLEHostSupport, for: purpose) { $0 += [1, 0] }
        case .maximumDataLength: return HCICommand(.leReadMaximumDataLength, for: purpose)
        case .suggestedDataLength:
            return HCICommand(.leWriteSuggestedDefaultDataLength, for: purpose) {
                $0.append(u16: controller.maximumTransmitOctets)
                $0.append(u16: controller.maximumTransmitTime)
            }
        case .defaultPHY: return HCICommand(.leSetDefaultPHY, for: purpose) { $0 += [0, 0x03, 0x03] }
        case .filterAcceptListSize: return HCICommand(.leReadFilterAcceptListSize, for: purpose)
        case .resolvingListSize: return HCICommand(.leReadResolvingListSize, for: purpose)
        case .randomAddress: return HCICommand(.leSetRandomAddress, for: purpose) { $0 += randomAddress.bytes }
        }
    }

    /// The specification's default, and Read Remote Version, Encryption Key Refresh and LE Meta (7.3.1).
    static let eventMaskBits: UInt64 = 0x1FFF_FFFF_FFFF | 1 << 47 | 1 << 61

    /// The LE events that the host understands and the controller can have (7.8.1). Older controllers refuse bits that
    /// they do not know, so features of theirs decide.
    static func leEventMaskBits(_ controller: ControllerInfo) -> UInt64 {
        var bits: UInt64 = 0b1_1111  // connection complete, reports, update, remote features, long-term key
        if controller.hasConnectionParameterRequest { bits |= 1 << 5 }
        if controller.hasDataLengthExtension { bits |= 1 << 6 }
        if controller.has2MPHY { bits |= 1 << 11 }
        if controller.usesExtendedAdvertising { bits |= 1 << 9 | 1 << 12 | 1 << 17 }
        if controller.hasResolvingList { bits |= 1 << 9 }
        return bits
    }

    /// Stores what a step's answer says; `parameters` begin after the status.
    func read(_ parameters: [UInt8], into controller: inout ControllerInfo) throws(MalformedPacket) {
        var reader = ByteReader(parameters)
        switch self {
        case .version:
            controller.hciVersion = try reader.u8()
            _ = try reader.bytes(3)
            controller.manufacturer = try reader.u16()
        case .commands: controller.supportedCommands = try reader.bytes(64)
        case .features: controller.features = try reader.u64()
        case .publicAddress: controller.publicAddress = try Address(&reader, kind: .public)
        case .leFeatures: controller.leFeatures = try reader.u64()
        case .leBufferSize, .leBufferSizeV2:
            controller.aclPacketLength = Int(try reader.u16())
            controller.aclPacketCount = Int(try reader.u8())
        case .bufferSize:
            let length = try reader.u16()
            _ = try reader.u8()
            controller.aclPacketLength = Int(length)
            controller.aclPacketCount = Int(try reader.u16())
        case .maximumDataLength:
            controller.maximumTransmitOctets = min(max(try reader.u16(), 27), 251)
            controller.maximumTransmitTime = min(max(try reader.u16(), 328), 17040)
        // More than a few dozen are not worth the time that it takes to enter them.
        case .filterAcceptListSize: controller.filterAcceptListSize = min(Int(try reader.u8()), 32)
        case .resolvingListSize: controller.resolvingListSize = min(Int(try reader.u8()), 32)
        default: break
        }
    }
}
