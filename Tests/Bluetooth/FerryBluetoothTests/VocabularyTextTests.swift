import FerryBluetooth
import TestSupport
import Testing

@Suite("Descriptions of the GATT vocabulary", .tags(.bluetooth, .gatt)) struct VocabularyTextTests {
    @Test(
        "ATT errors print their name and code",
        arguments: [
            (0x01, "Invalid Handle (0x01)"), (0x07, "Invalid Offset (0x07)"), (0x0E, "Unlikely Error (0x0E)"),
            (0x0C, "Encryption Key Size Too Short (0x0C)"), (0x13, "Value Not Allowed (0x13)"),
            (0x00, "Reserved Error (0x00)"), (0x14, "Reserved Error (0x14)"), (0x7F, "Reserved Error (0x7F)"),
            (0x80, "Application Error (0x80)"), (0x9F, "Application Error (0x9F)"), (0xA0, "Reserved Error (0xA0)"),
            (0xDF, "Reserved Error (0xDF)"), (0xE0, "Common Profile or Service Error (0xE0)"),
            (0xFC, "Write Request Rejected (0xFC)"), (0xFE, "Procedure Already in Progress (0xFE)"),
            (0xFF, "Out of Range (0xFF)"),
        ] as [(UInt8, String)])
    func attErrors(code: UInt8, text: String) {
        #expect(ATTError(rawValue: code).description == text)
    }

    @Test("Every ATT error explains itself in one line") func explanations() {
        for code in UInt8.min...UInt8.max {
            let error = ATTError(rawValue: code)
            #expect(error.explanation.hasSuffix(".") && !error.explanation.contains("\n"))
            #expect(error.isApplicationError == (0x80...0x9F).contains(code))
            #expect(error.isCommonProfileError == (code >= 0xE0))
        }
    }

    @Test("Properties list their members") func properties() {
        #expect(CharacteristicProperties().description == "[]")
        #expect(([.notify, .read] as CharacteristicProperties).description == "[read, notify]")
        #expect(
            CharacteristicProperties(rawValue: 0xFFFF).description
                == "[broadcast, read, writeWithoutResponse, write, notify, indicate, authenticatedSignedWrites, "
                + "extendedProperties, notifyEncryptionRequired, indicateEncryptionRequired, 0xFC00]")
    }

    @Test("Permissions list their members") func permissions() {
        #expect(AttributePermissions().description == "[]")
        #expect(AttributePermissions.writeEncryptionRequired.description == "[writeEncryptionRequired]")
        #expect(
            AttributePermissions(rawValue: 0xFF).description
                == "[readable, writeable, readEncryptionRequired, writeEncryptionRequired, authenticationRequired, "
                + "secureConnectionsRequired, 0xC0]")
    }
}
