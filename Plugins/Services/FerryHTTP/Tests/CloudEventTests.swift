#if HTTP
    import Ferry
    import FerryFleet
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryHTTP

    @Suite(.tags(.records)) struct CloudEventTests {
        private func text(
            _ bytes: [UInt8], _ contentType: String = "application/json", _ fields: [OutletMessage.Field] = []
        ) -> String {
            let message = OutletMessage(
                .init(sender: "e5", stream: "air"), key: "e5/1/air/7", fields: fields, bytes: bytes)
            return String(
                decoding: CloudEvent(contentType: contentType, eventType: "t").bytes(message), as: UTF8.self)
        }

        @Test func jsonStandsInTheEventAsItIs() {
            #expect(
                text(Array(#"{"t": 21.50}"#.utf8), "application/json", [.init("Ferry-Peer", "attic")])
                    == #"{"datacontenttype":"application/json","ferrypeer":"attic","id":"e5/1/air/7","#
                    + #""source":"ferry/records/e5/air","specversion":"1.0","type":"t","data":{"t": 21.50}}"#)
        }

        @Test(
            "What could break out of its event is in base64",
            arguments: [
                "", "{", "1},{\"id\":2", "[1]]", "1 2", "nul", "'a'", "{\"a\":1,}", "[1, ]", "[\"a\\\\\",\n]", "01",
                "[1,,2]",
                "\u{FEFF}1", "1\0", "\0 1", "NaN",
            ])
        func noJSON(_ record: String) throws {
            let text = text(Array(record.utf8))
            #expect(text.contains(#""datacontenttype":"application/octet-stream""#) && !text.contains(#""data":"#))
            let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String])
            #expect(object["data_base64"].flatMap { Data(base64Encoded: $0) } == Data(record.utf8))
        }

        @Test(
            "Bytes that are no UTF-8 are in base64",
            arguments: [[0x22, 0xFF, 0x22], [0xFE, 0xFF, 0, 0x31], [0x31, 0]])
        func noText(_ bytes: [UInt8]) { #expect(text(bytes).contains("data_base64")) }

        @Test(
            "JSON of any depth and kind",
            arguments: ["0", "null", "\"ä\"", "[[1],{}]", " {\"a\":[1e5]} ", "[\",]\", \"\\\",]\"]"])
        func json(_ record: String) throws {
            let text = text(Array(record.utf8))
            #expect(text.hasSuffix(#","data":\#(record)}"#))
            #expect((try? JSONSerialization.jsonObject(with: Data(text.utf8))) != nil)
        }

        @Test func otherContentStaysBase64() {
            #expect(text([1, 2], "application/octet-stream").contains(#""data_base64":"AQI=""#))
            #expect(text(Array("1".utf8), "application/senml+json; v=1").hasSuffix(#","data":1}"#))
            #expect(text(Array("1".utf8), "application/json-seq").contains("data_base64"))
        }

        @Test func noFieldTakesTheNameOfAnAttribute() {
            let names = ["ID", "Source", "specversion", "Type", "data", "DataContentType", "time", "-", "Data-Base64"]
            let text = text(
                [1], "application/octet-stream",
                names.map { .init($0, "stolen") })
            // A field that says data_base64 without the line is an attribute of its own.
            #expect(text.components(separatedBy: "stolen").count == 2 && text.contains(#""database64":"stolen""#))
        }

        @Test("Two lanes have two sources") func sources() {
            let names = ["", " ", "a", "A", "a/b", "%", "%25", "ä", "."]
            let sources = names.flatMap { sender in
                names.map { CloudEvent.source(.init(sender: sender, stream: $0)) }
            }
            #expect(Set(sources).count == names.count * names.count)
            #expect(sources.allSatisfy { URL(string: $0) != nil })
            #expect(CloudEvent.source(.init(sender: "e5", stream: "")) == "ferry/records/e5/")
        }
    }
#endif
