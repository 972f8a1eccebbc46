import ArgumentParser
import Ferry
import FerrySMP
import Foundation

/// `ferry smp`: devices on Zephyr's MCUmgr.
struct SMP: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "smp",
        abstract: "Manages a device that speaks SMP, as products on Zephyr's MCUmgr do: firmware, files, settings.",
        discussion: """
            ferry smp echo hello --transport hci:user:0
            ferry smp image upload app.signed.bin --transport hci:user:0
            ferry smp image list --transport hci:user:0
            ferry smp image test HASH --transport hci:user:0
            ferry smp reset --transport hci:user:0

            Ends with 0 when the device has done it, 1 when it has not, 64 for wrong usage, 130 after Ctrl-C. An upload of an image \
            that was broken off goes on where it stopped.
            """,
        subcommands: [Echo.self, Info.self, Reset.self, Image.self, Files.self, Settings.self, Serve.self])

    /// Connects, runs the work, and disconnects.
    static func run(
        _ options: DeviceOptions, _ body: @escaping @Sendable (SMPClient) async throws -> Void
    ) async throws {
        try await DeviceOptions.run {
            let link = try await options.connect(.smp)
            let client = try SMPClient(over: link)
            defer { client.close() }
            try await body(client)
        }
    }

    struct Echo: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Has the device send a text back.")
        @Argument(help: "The text.") var text: String
        @OptionGroup var options: DeviceOptions

        func run() async throws {
            try await SMP.run(options) { [text] in try Output.print(try await $0.echo(text).harmless + "\n") }
        }
    }

    struct Info: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints what the device says of itself, and its buffers.")
        @Option(help: "What to ask for, as uname: s, n, r, v, b, m, p, i, o; a for everything.") var format = "a"
        @OptionGroup var options: DeviceOptions

        func run() async throws {
            try await SMP.run(options) { [format] client in
                try Output.print(try await client.information(format).harmless + "\n")
                let buffers = try await client.parameters()
                try Output.print(
                    buffers.map { "\($0.bufferCount) buffers of \($0.bufferSize) bytes\n" }
                        ?? "requests of one chunk each: it was built without reassembly\n")
            }
        }
    }

    struct Reset: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Starts the device anew.")
        @OptionGroup var options: DeviceOptions

        func run() async throws { try await SMP.run(options) { try await $0.reset() } }
    }

    /// Firmware images.
    struct Image: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists, uploads, tests and confirms firmware images.",
            subcommands: [List.self, Upload.self, Test.self, Confirm.self, Erase.self])

        static func show(_ images: [SMPImageState]) throws {
            for image in images {
                let flags = [
                    ("bootable", image.bootable), ("pending", image.pending), ("confirmed", image.confirmed),
                    ("active", image.active), ("permanent", image.permanent),
                ].filter { $0.1 == true }.map(\.0)
                let place = "image \(image.image ?? 0) slot \(image.slot)"
                try Output.print(
                    "\(place)  \(image.version.harmless)  \(image.hash?.hexadecimal() ?? "-")  \(flags.joined(separator: ","))\n"
                )
            }
        }

        /// The hash that was typed.
        static func hash(_ text: String) throws -> [UInt8] {
            guard let hash = [UInt8](hexadecimal: text), (1...64).contains(hash.count) else {
                throw ValidationError("'\(text)' is no hash: give the digits that ferry smp image list prints.")
            }
            return hash
        }

        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Prints what the slots hold.")
            @OptionGroup var options: DeviceOptions

            func run() async throws { try await SMP.run(options) { try Image.show(try await $0.images()) } }
        }

        struct Upload: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Uploads an image into the slot that does not run.")
            @Argument(help: "The signed image; - is standard input.", completion: .file()) var file: String
            @Option(help: "The image's number, where the device has several.") var image = 0
            @Flag(help: "Have the device refuse a version that is not newer.") var upgradeOnly = false
            @Option(help: "The most requests under way. (default: what the device's buffers allow, up to 3)")
            var window: Int?
            @OptionGroup var options: DeviceOptions

            func validate() throws {
                guard image >= 0, (1...64).contains(window ?? 1) else {
                    throw ValidationError("Give an image of 0 or more, and a window of 1 to 64.")
                }
            }

            func run() async throws {
                try DeviceOptions.check(file)
                try await SMP.run(options) { [self] client in
                    let bytes = try await DeviceOptions.read(file, limit: 64 << 20)
                    guard bytes.count <= 64 << 20 else { throw CommandFailure("The image has more than 64 MiB.") }
                    let bar = ProgressBar(total: bytes.count)
                    defer { bar.finish() }
                    try await client.uploadImage(bytes, number: image, upgradeOnly: upgradeOnly, window: window) {
                        bar.show($0.bytes)
                    }
                }
            }
        }

        struct Test: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Has an image started next, once.")
            @Argument(help: "Its hash, as ferry smp image list prints it.") var hash: String
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                let hash = try Image.hash(hash)
                try await SMP.run(options) { try Image.show(try await $0.setImage(hash, confirm: false)) }
            }
        }

        struct Confirm: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Keeps an image: the one that runs, or another one.")
            @Argument(help: "Its hash. (default: the one that runs)") var hash: String?
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                let hash = try hash.map(Image.hash)
                try await SMP.run(options) { try Image.show(try await $0.setImage(hash, confirm: true)) }
            }
        }

        struct Erase: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Erases a slot.")
            @Option(help: "The slot. (default: the one that is uploaded to)") var slot: Int?
            @OptionGroup var options: DeviceOptions

            func run() async throws { try await SMP.run(options) { [slot] in try await $0.eraseImage(slot: slot) } }
        }
    }

    /// Files on the device.
    struct Files: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "fs", abstract: "Reads and writes files on the device.", subcommands: [Get.self, Put.self])

        struct Get: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Reads a file of the device's.")
            @Argument(help: "Its path on the device: /lfs/log.txt.") var name: String
            @Argument(help: "Where to; - is standard output.", completion: .file()) var file = "-"
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                if file != "-" {
                    do throws(FerryError) { try JSONFile.checkFolder(of: file) } catch {
                        throw CommandFailure(error.message)
                    }
                }
                try await SMP.run(options) { [name, file] client in
                    try await DeviceOptions.write(try await client.readFile(name), to: file)
                }
            }
        }

        struct Put: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Writes a file on the device.")
            @Argument(help: "From where; - is standard input.", completion: .file()) var file: String
            @Argument(help: "Its path on the device: /lfs/settings.json.") var name: String
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                try DeviceOptions.check(file, mayBeEmpty: true)
                try await SMP.run(options) { [name, file] client in
                    let bytes = try await DeviceOptions.read(file, limit: 64 << 20)
                    guard bytes.count <= 64 << 20 else { throw CommandFailure("The file has more than 64 MiB.") }
                    let bar = ProgressBar(total: bytes.count)
                    defer { bar.finish() }
                    try await client.writeFile(name, bytes) { bar.show($0.bytes) }
                }
            }
        }
    }

    /// Settings by name.
    struct Settings: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reads and writes the device's settings, whose values are bytes.",
            subcommands: [Get.self, Set.self, Delete.self, Save.self])

        struct Get: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Prints a setting's value in hexadecimal.")
            @Argument(help: "Its name.") var name: String
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                try await SMP.run(options) { [name] in try Output.print(try await $0.setting(name).hexadecimal() + "\n")
                }
            }
        }

        struct Set: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Sets a setting in the device's memory, and has its parts take it.")
            @Argument(help: "Its name.") var name: String
            @Argument(help: "Its value, in hexadecimal.") var value: String
            @OptionGroup var options: DeviceOptions

            func run() async throws {
                guard let bytes = [UInt8](hexadecimal: value) else {
                    throw ValidationError("'\(value)' is no value: give pairs of hexadecimal digits.")
                }
                try await SMP.run(options) { [name] client in
                    try await client.setSetting(name, to: bytes)
                    try await client.commitSettings()
                }
            }
        }

        struct Delete: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Deletes a setting.")
            @Argument(help: "Its name.") var name: String
            @OptionGroup var options: DeviceOptions

            func run() async throws { try await SMP.run(options) { [name] in try await $0.deleteSetting(name) } }
        }

        struct Save: AsyncParsableCommand {
            static let configuration = CommandConfiguration(abstract: "Keeps the settings over a restart.")
            @OptionGroup var options: DeviceOptions

            func run() async throws { try await SMP.run(options) { try await $0.saveSettings() } }
        }
    }

    /// A device without hardware.
    struct Serve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Is a device: serves echo, images, files and settings from memory until interrupted.",
            discussion: "For tests of apps. All clients see the same files, settings and images, as long as it runs.")
        @Option(help: ArgumentHelp("The most bytes of a request.", valueName: "bytes")) var buffer = 2475
        @Option(help: "How many buffers it says that it has.") var buffers = 4
        @Flag(help: "Do not tell the buffers, as a device without reassembly.") var oneChunk = false
        @Flag(help: "Write errors as version 1 does.") var oldErrors = false
        @OptionGroup var options: DeviceOptions

        func validate() throws {
            guard (32...65_535).contains(buffer), (1...64).contains(buffers) else {
                throw ValidationError("Give a buffer of 32 to 65535 bytes, and 1 to 64 of them.")
            }
        }

        func run() async throws {
            var configuration = SMPServer.Configuration()
            configuration.bufferSize = buffer
            configuration.bufferCount = buffers
            configuration.tellsParameters = !oneChunk
            configuration.errors = oldErrors ? .one : .two
            configuration.information = "Ferry"
            let device = SMPDevice(SMPServer(configuration))
            try await DeviceOptions.run { [self] in
                let listener = try await options.open(.smp, "device").listen()
                note("ferry: Serving over \(options.transport); Ctrl-C ends it.")
                try await withThrowingDiscardingTaskGroup { group in
                    for await link in listener.links {
                        group.addTask {
                            let responder = try? SMPResponder(over: link, device)
                            _ = await responder?.closed
                        }
                    }
                }
                if let reason = listener.interruption { throw reason }
            }
        }
    }
}
