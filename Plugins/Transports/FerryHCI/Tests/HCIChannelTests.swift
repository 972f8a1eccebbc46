#if HCI
    import FerryBluetooth
    import Foundation
    import NIOCore
    import NIOEmbedded
    import TestSupport
    import Testing

    @testable import FerryHCI

    @Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct HCIChannelTests {
        @Test(arguments: [
            "hci:tcp:127.0.0.1:9001", "hci:tcp:::1:65535", "hci:unix:/tmp/hci.sock", "hci:unix:a:b",
            "hci:serial:/dev/ttyACM0,1000000", "hci:user:0",
        ])
        func specificationsAreReadAndPrinted(text: String) throws {
            #expect("\(try HCIChannel(text))" == text)
        }

        @Test(arguments: [
            "", "hci", "hci:tcp", "hci:tcp:host", "hci:tcp:host:0", "hci:tcp:host:65536", "hci:tcp::9", "hci:unix:",
            "hci:user:x", "hci:user:-1", "hci:user:65535", "hci:serial:", "hci:serial:,9600", "hci:serial:/dev/x,fast",
            "tcp:host:1", "hci:unix:" + String(repeating: "x", count: 108),
        ])
        func othersAreRefusedWithWhatIsAccepted(text: String) {
            let error = #expect(throws: BluetoothError.self) { try HCIChannel(text) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("hci:tcp:HOST:PORT") == true)
        }

        @Test func nobodyThereIsSaidSo() async {
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await HCIAdapter.open(.unix(path: "/nonexistent/hci.sock"))
            }
            #expect(error?.code == .notPoweredOn)
            #expect(error?.message.contains("hci:unix:/nonexistent/hci.sock") == true)
        }

        @Test func theSpeedOfASerialLineHasADefault() throws {
            #expect(try HCIChannel("hci:serial:/dev/ttyUSB0") == .serial(path: "/dev/ttyUSB0", speed: 115_200))
        }

        @Test(arguments: [
            (
                HCIChannel.serial(path: "/nonexistent/tty", speed: 115_200),
                "cannot be opened: No such file or directory"
            ),
            (.serial(path: "/dev/null", speed: 115_200), "/dev/null is no serial line"),
            (.serial(path: "/dev/null", speed: 12_345), "Use one of: 9600, 19200,"),
        ])
        func linesThatAreNoneAreSaidSo(channel: HCIChannel, what: String) async {
            let error = await #expect(throws: BluetoothError.self) { _ = try await HCIAdapter.open(channel) }
            #expect(error?.message.contains(what) == true, "\(String(describing: error))")
        }

        @Test(arguments: [
            (EAFNOSUPPORT, "load the module bluetooth"), (ENODEV, "There is no adapter hci3"),
            (EBUSY, "btmgmt --index 3 power off"), (EPERM, "CAP_NET_ADMIN"), (ERFKILL, "rfkill unblock"),
            (EIO, "cannot be taken"),
        ])
        func adaptersThatCannotBeTakenAreExplained(code: Int32, what: String) {
            let error = UserChannel.explain(code, 3)
            #expect(error.code == .notPoweredOn)
            #expect(error.message.contains(what), "\(error)")
        }

        /// The kernel takes one packet a write: what was gathered is written packet by packet.
        @Test func packetsAreWrittenOneByOne() throws {
            let channel = EmbeddedChannel(handler: PacketWriter())
            let packets: [[UInt8]] = [
                [1, 3, 0x0C, 0], [2, 0x40, 0, 3, 0, 7, 8, 9], [1, 1, 0x20, 8, 1, 2, 3, 4, 5, 6, 7, 8],
            ]
            try channel.writeOutbound(ByteBuffer(bytes: packets.flatMap { $0 }))
            for packet in packets {
                #expect(try channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: packet))
            }
            #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        }

        @Test func monitorsAreRead() throws {
            for text in ["hci:monitor", "hci:monitor:3"] { #expect("\(try HCIMonitor.Source(text))" == text) }
            for text in [
                "", "hci", "hci:monitor:", "hci:monitor:65535", "hci:monitor:-1", "hci:monitor:1:2", "hci:user:0",
            ] {
                let error = #expect(throws: BluetoothError.self) { try HCIMonitor.Source(text) }
                #expect(error?.message.contains("hci:monitor:NUMBER") == true)
            }
            #expect(MonitorChannel.explain(EPERM).message.contains("CAP_NET_RAW"))
            #expect(MonitorChannel.explain(EAFNOSUPPORT).message.contains("no Bluetooth"))
        }
    }
#endif
