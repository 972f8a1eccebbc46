import Ferry
import FerryPropertyList
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

@Suite(.tags(.codec, .hostility)) struct HostileXMLTests {
    @Test(arguments: [
        ("", "its end where an XML element was expected, at line 1, column 1 (byte 0 of 0)"),
        ("{ a = b; }", "'{' where an XML element was expected"),  // OpenStep
        ("<plist>\n<dict>\n<key>a</key><string>b</strin></dict></plist>", "line 3, column 22"),
        ("<plist><dict></array></plist>", "a closing tag that matches no open element"),
        ("</plist>", "a closing tag that matches no open element"),
        ("<plist><dict>", "its end where '</dict>' was expected"),
        ("<plist><dict/></plist><dict/>", "a second element at the top"),
        ("<plist><plist><dict/></plist></plist>", "a <plist> inside another element"),
        ("<plist><widget/></plist>", "'w' where one of the elements of a property list was expected"),
        ("<plist><dictx/></plist>", "'d' where one of the elements"),
        ("<plist><dict", "its end where '>' was expected"),
        ("<plist><string>a", "its end where '</string>' was expected"),
        ("<plist><string>a<![CDATA[b</string>", "character data that does not end"),
        ("<plist><!-- ", "a comment that does not end"),
        ("<?xml ", "a processing instruction that does not end"),
        ("<plist><?><array></array></plist>", "an empty processing instruction"),
        ("<!DOCTYPE plist [<!ENTITY a \"b\">]><plist/>", "'[' where '>' of the document type was expected"),
        ("<?xml version=\"1.0\" encoding=\"UTF-16\"?><plist/>", "an encoding other than UTF-8"),
        ("<?xml version=\"1.0\" encoding=utf-7 ?><plist/>", "an encoding other than UTF-8"),
        ("<\u{0}p\u{0}", "a byte 0"),
    ])
    func malformed(text: String, what: String) throws {
        let error = try #require(throws: FerryError.self) { _ = try Plain().decode(Array(text.utf8)) }
        #expect(error.code == .decodingFailed)
        #expect(error.message.contains(what), "\(error.message)")
    }

    /// What the structure does not show, Foundation refuses; its reason is passed on.
    @Test(arguments: [
        "<plist></plist>", "<plist/>", "<plist><dict><key>a</key></dict></plist>",
        "<plist><dict><string>a</string><string>b</string></dict></plist>",
        "<plist><dict><key>a</key><string>&unknown;</string></dict></plist>",
        "<plist><dict><key>a</key><string>&</string></dict></plist>",
        "<plist><array/></plist>", "<plist><true/></plist>", "<plist><key>a</key></plist>",
    ])
    func refusedByFoundation(text: String) throws {
        let error = try #require(throws: FerryError.self) { _ = try Plain().decode(Array(text.utf8)) }
        #expect(error.code == .decodingFailed)
        #expect(error.cause is DecodingError)
    }

    @Test func otherEncodingsAreRefused() throws {
        let text = "<plist><dict/></plist>"
        let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        let little = text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        for payload in [big, little, [0xFE, 0xFF] + big, [0xFF, 0xFE] + little, [0xFF], [0x3C, 0xC3, 0x28]] {
            #expect(throws: FerryError.self) { try Plain().decode(payload) }
        }
        #expect(try Plain().decode([0xEF, 0xBB, 0xBF] + Array(text.utf8)) == [:])
    }

    @Test func acceptsWhatTheFormatAllows() throws {
        let text = """
            <?xml version='1.0' encoding='utf-8'?><!-- <array> --><?other <array> ?>
            <plist version="1.0" ><!-- </plist> --><dict ><key>a</key ><!----><string>x<![CDATA[</string><array>]]>y</string>
            <key><![CDATA[b]]></key><string/><?x?></dict></plist><!-- end -->
            """
        #expect(try Plain().decode(Array(text.utf8)) == ["a": "x</string><array>y", "b": ""])
    }

    /// Numbers and dates at and beyond every edge: refused or read, never a trap.
    @Test func extremeValues() throws {
        let years = [
            "0", "-1", "9999", "100000", "2147483648", "9223372036854775807", "-9223372036854775807",
            "99999999999999999999",
        ]
        for year in years {
            for rest in ["01-01T00:00:00Z", "99-99T99:99:99Z", "00-00T00:00:00Z"] {
                let text = "<plist><array><date>\(year)-\(rest)</date></array></plist>"
                _ = try? PropertyListCodec<[Date]>().decode(Array(text.utf8))
            }
        }
        for number in [
            "", " ", "-", "+", "0x", "0xFFFFFFFFFFFFFFFFFF", "99999999999999999999", "- 5", "1e999", "nan", "\u{A0}1",
            "\u{85}",
        ] {
            for tag in ["integer", "real", "data", "date"] {
                let text = "<plist><array><\(tag)>\(number)</\(tag)></array></plist>"
                _ = try? PropertyListCodec<[Int8]>().decode(Array(text.utf8))
                _ = try? PropertyListCodec<[UInt64]>().decode(Array(text.utf8))
                _ = try? PropertyListCodec<[Float]>().decode(Array(text.utf8))
                _ = try? PropertyListCodec<[Data]>().decode(Array(text.utf8))
                _ = try? PropertyListCodec<[Date]>().decode(Array(text.utf8))
            }
        }
    }
}
