extension ATTError {
    /// The error's name as the specification prints it, such as `Invalid Offset`.
    ///
    /// Source: Core Specification 5.4, Vol 3, Part F, table 3.4, and the Core Specification Supplement, Part B,
    /// table 1.1. Codes without a name of their own are told by their range.
    public var name: String {
        switch rawValue {
        case 0x01: "Invalid Handle"
        case 0x02: "Read Not Permitted"
        case 0x03: "Write Not Permitted"
        case 0x04: "Invalid PDU"
        case 0x05: "Insufficient Authentication"
        case 0x06: "Request Not Supported"
        case 0x07: "Invalid Offset"
        case 0x08: "Insufficient Authorization"
        case 0x09: "Prepare Queue Full"
        case 0x0A: "Attribute Not Found"
        case 0x0B: "Attribute Not Long"
        case 0x0C: "Encryption Key Size Too Short"
        case 0x0D: "Invalid Attribute Value Length"
        case 0x0E: "Unlikely Error"
        case 0x0F: "Insufficient Encryption"
        case 0x10: "Unsupported Group Type"
        case 0x11: "Insufficient Resources"
        case 0x12: "Database Out Of Sync"
        case 0x13: "Value Not Allowed"
        case 0x80...0x9F: "Application Error"
        case 0xFC: "Write Request Rejected"
        case 0xFD: "Client Characteristic Configuration Descriptor Improperly Configured"
        case 0xFE: "Procedure Already in Progress"
        case 0xFF: "Out of Range"
        case 0xE0...0xFB: "Common Profile or Service Error"
        default: "Reserved Error"
        }
    }

    /// What the error means, in one line.
    public var explanation: String {
        switch rawValue {
        case 0x01: "The attribute does not exist on this server; discover again."
        case 0x02: "The attribute's value cannot be read."
        case 0x03: "The attribute's value cannot be written."
        case 0x04: "The server could not understand the request."
        case 0x05: "The link must be authenticated first: pair the two devices."
        case 0x06: "The server does not support the request."
        case 0x07: "The offset lies past the end of the value."
        case 0x08: "The server does not allow this client to do that."
        case 0x09: "Too many prepared writes wait: execute or cancel them first."
        case 0x0A: "No attribute of that type is in the range asked for."
        case 0x0B: "The value cannot be read in parts."
        case 0x0C: "The link's encryption key is too short for this attribute."
        case 0x0D: "The value has a length that the attribute does not take."
        case 0x0E: "The server met an error for which there is no code."
        case 0x0F: "The link must be encrypted first: pair the two devices."
        case 0x10: "The attribute type is not one that groups others."
        case 0x11: "The server has no room left to carry out the request."
        case 0x12: "The server's attributes have changed: discover again."
        case 0x13: "The attribute does not allow this value."
        case 0x80...0x9F: "An error of the application's own; its documentation says what it means."
        case 0xFC: "The server understood the write and does not carry it out."
        case 0xFD: "The client's configuration descriptor is not set up for this operation."
        case 0xFE: "The same procedure is still under way."
        case 0xFF: "The value is out of the attribute's range."
        case 0xE0...0xFB: "An error common to profiles, with a code that this version does not know."
        default: "The code is reserved for future use."
        }
    }

    /// Whether the code belongs to the application: 0x80 to 0x9F.
    public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }

    /// Whether the code is common to profiles and services: 0xE0 to 0xFF.
    public var isCommonProfileError: Bool { rawValue >= 0xE0 }
}

extension ATTError: CustomStringConvertible {
    /// The name and the code, such as `Invalid Offset (0x07)`.
    public var description: String {
        let digits = String(rawValue, radix: 16, uppercase: true)
        return "\(name) (0x\(digits.count == 1 ? "0" : "")\(digits))"
    }
}
