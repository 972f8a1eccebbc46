import ArgumentParser
import Ferry
import FerryBluetooth
import FerryTransports
import TestSupport
import Testing

@testable import BusinessCard

@Suite(.tags(.program)) struct OptionTests {
    @Test func theDefaultsAreTheClassicExchange() throws {
        let options = try CardOptions.parse([])
        #expect(options.card == nil)
        #expect(options.save == nil)
        #expect(options.recipe.framing == .eom)
        #expect(options.recipe.codec == .json)
        #expect(!options.recipe.compresses)
        #expect(options.recipe.chunkSize == nil)
        #expect(options.recipe.framing.chunkBound(options.recipe.chunkSize) == 20)
        #expect(options.radio.interval == .microseconds(7500))
        #expect(options.radio.rssi == nil)
        #expect(options.timeout == .seconds(30))
        #expect(options.transport.description == "loopback")
        #expect(CardService.service.uuidString == "E07F0AE8-00BB-47F5-94F4-4A7174EA3032")
        #expect(CardService.characteristic.uuidString == "9D534E8B-2153-4F6D-B2B0-8C68665A7274")
    }

    @Test func everyOptionIsTaken() throws {
        let options = try CardOptions.parse([
            "--card", "in.vcf", "--save", "out.plist", "--framing", "length", "--codec", "xml", "--compress", "--chunk",
            "182", "--log", "--timeout", "2.5", "--interval", "0", "--transport", "loopback",
        ])
        #expect(options.card == "in.vcf")
        #expect(options.save == "out.plist")
        #expect(options.recipe.framing == .length)
        #expect(options.recipe.codec == .xml)
        #expect(options.recipe.compresses)
        #expect(options.recipe.chunkSize == 182)
        #expect(options.log)
        #expect(options.timeout == .milliseconds(2500))
        #expect(options.radio.interval == .zero)
    }

    @Test(arguments: [
        (["--rssi", "-32...-15"], -32 ... -15), (["--rssi=-32...-15"], -32 ... -15),
        (["--rssi", "-127...20"], -127...20),
        (["--log", "--rssi", "-60...-60", "--compress"], -60 ... -60),
    ])
    func takesASignalWindowThatBeginsWithAMinus(_ arguments: [String], _ window: ClosedRange<Int>) throws {
        #expect(try CardOptions.parse(arguments).rssi == window)
    }

    @Test(arguments: [
        (["--rssi", "--log"], "Give two signal strengths in dBm"),
        (["--rssi", "-15...-32"], "the weaker first"),
        (["--rssi", "-32..-15"], "Give two signal strengths"),
        (["--rssi", "-128...0"], "from -127 to 20"),
        (["--rssi", "-9223372036854775809...0"], "from -127 to 20"),
        (["--rssi", "-32...-20...-15"], "Give two signal strengths"),
        (["--chunk", "0"], "Give a number of bytes from 1 to 512."),
        (["--chunk", "513"], "Give a number of bytes from 1 to 512."),
        (["--chunk", "many"], "Give a number of bytes from 1 to 512."),
        (["--chunk", "2"], "--chunk: A chunk size of 2 is too small"),
        (["--timeout", "0"], "Give a number of seconds from 0.001 to 86400."),
        (["--timeout", "nan"], "Give a number of seconds"),
        (["--timeout", "1e300"], "Give a number of seconds"),
        (["--timeout=-1"], "Give a number of seconds"),
        (["--interval", "0.5"], "Give 1 to 4000 milliseconds"),
        (["--interval", "inf"], "Give 1 to 4000 milliseconds"),
        (["--framing", "slip"], "Please provide one of 'eom', 'length' or 'sequenced'."),
        (["--codec", "yaml"], "Please provide one of 'json', 'cbor', 'plist' or 'xml'."),
        (["--save", "card.txt"], "A card is saved as .json, .plist or .vcf."),
        (["--transport", "a\u{1B}[2Jb"], "There is no transport \"a\\u{1B}[2Jb\""),
        (["serve", "--chunk", "0"], "Give a number of bytes from 1 to 512."),
        (["receive", "--rssi", "x"], "Give two signal strengths"),
        (["--capture", "x"], "the loopback transport has none"),
        (["--frob"], "Unknown option '--frob'"),
    ])
    func refusesWrongOptions(_ arguments: [String], _ expected: String) {
        let error = #expect(throws: (any Error).self) { try BusinessCardCommand.parseAsRoot(arguments) }
        guard let error else { return }
        let message = BusinessCardCommand.fullMessage(for: error)
        #expect(message.contains(expected), "\(message)")
        #expect(BusinessCardCommand.exitCode(for: error).rawValue == 64)
    }

    @Test func aChunkOfOneByteSuitsTheLengthPrefix() throws {
        #expect(try CardOptions.parse(["--framing", "length", "--chunk", "1"]).chunk == 1)
    }

    @Test func withoutASubcommandBothRolesRun() throws {
        #expect(try BusinessCardCommand.parseAsRoot([]) is BusinessCardCommand)
        let command = try #require(try BusinessCardCommand.parseAsRoot(["--chunk", "7"]) as? BusinessCardCommand)
        #expect(command.options.chunk == 7)
    }

    @Test(arguments: ["serve", "receive"])
    func aRoleAloneNeedsATransportThatLeavesTheProcess(_ role: String) {
        let error = #expect(throws: (any Error).self) { try BusinessCardCommand.parseAsRoot([role]) }
        guard let error else { return }
        let message = BusinessCardCommand.fullMessage(for: error)
        #expect(message.contains("\(role) would meet no peer: the loopback transport is a virtual radio within one"))
        #expect(message.contains("Run business-card without a subcommand"))
        #expect(BusinessCardCommand.exitCode(for: error).rawValue == 64)
    }

    #if HCI
        @Test func controllersOfOnesOwnAreTakenByTheirAddress() throws {
            let options = try CardOptions.parse(["--transport", "hci:tcp:127.0.0.1:9001"])
            #expect(options.transport.description == "hci:tcp:127.0.0.1:9001")
            #expect(throws: (any Error).self) { try options.requireOneProcess() }
            let error = #expect(throws: (any Error).self) { try CardOptions.parse(["--transport", "hci:tcp:x"]) }
            #expect(CardOptions.fullMessage(for: try #require(error)).contains("Use hci:tcp:HOST:PORT"))
        }
    #else
        @Test func controllersAreSaidHowToBuild() throws {
            let error = #expect(throws: (any Error).self) {
                try CardOptions.parse(["--transport", "hci:tcp:127.0.0.1:9001"])
            }
            #expect(CardOptions.fullMessage(for: try #require(error)).contains("swift run --traits HCI business-card"))
        }
    #endif

    #if BlueZ
        @Test(arguments: ["bluez", "bluez:hci1"])
        func adaptersOfBluetoothdAreTakenByTheirName(_ name: String) throws {
            let options = try CardOptions.parse(["--transport", name])
            #expect(options.transport.description == name && options.transport.reachesOtherProcesses)
        }
    #else
        @Test func bluetoothdIsSaidHowToBuild() throws {
            let error = #expect(throws: (any Error).self) { try CardOptions.parse(["--transport", "bluez"]) }
            let message = CardOptions.fullMessage(for: try #require(error))
            #expect(message.contains("build with the trait BlueZ: swift run --traits BlueZ business-card"))
        }
    #endif
}
