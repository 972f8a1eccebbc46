#if BlueZ
    @testable import FerryBlueZ
    import FerryBluetooth
    import TestSupport
    import Testing

    /// The bytes of the kernel's management interface (BlueZ, doc/mgmt-api.txt: "Get Connection Information Command").
    @Suite(.tags(.adapter, .l2cap)) struct ManagementTests {
        private let device = DeviceAddress(bytes: [0x42, 0, 0, 1, 0xAA, 0], isRandom: true)

        private func event(_ bytes: [UInt8]) -> Result<Int, BluetoothError>? { Management.answer(bytes, from: device) }

        @Test func theQuestion() {
            #expect(
                Management.question(0x0102, device)
                    == [0x31, 0, 0x02, 0x01, 7, 0, 0x42, 0, 0, 1, 0xAA, 0, 2])
        }

        @Test func theAnswer() throws {
            let complete: [UInt8] = [1, 0, 0, 0, 13, 0, 0x31, 0, 0, 0x42, 0, 0, 1, 0xAA, 0, 2, 0xC4, 4, 8]
            #expect(try event(complete)?.get() == -60)
            // Of another device, of another command, cut short, something that merely happens.
            #expect(event(complete.replacing(9, with: 0x43)) == nil)
            #expect(event(complete.replacing(6, with: 0x32)) == nil)
            #expect(event(Array(complete.prefix(16))) == nil)
            #expect(event([]) == nil)
            #expect(event([0x12, 0, 0, 0, 2, 0, 1, 2]) == nil)
        }

        @Test(arguments: [
            (0x02, BluetoothError.Code.notConnected), (0x0F, .notPoweredOn), (0x14, .notSupported),
            (0x03, .notSupported),
        ])
        func refusals(_ status: Int, code: BluetoothError.Code) {
            for kind: UInt8 in [1, 2] {
                guard case .failure(let error)? = event([kind, 0, 0, 0, 3, 0, 0x31, 0, UInt8(status)]) else {
                    Issue.record("status \(status) is no failure")
                    continue
                }
                #expect(error.code == code)
                #expect(error.message.contains("CAP_NET_ADMIN") == (status == 0x14))
            }
        }

        @Test func anUnknownStrengthIsNoStrength() {
            let unknown: [UInt8] = [1, 0, 0, 0, 13, 0, 0x31, 0, 0, 0x42, 0, 0, 1, 0xAA, 0, 2, 127, 127, 127]
            guard case .failure(let error)? = event(unknown) else { return #expect(Bool(false), "127 is a strength") }
            #expect(error.code == .notSupported)
        }

        @Test func addressesAreTheKernels() {
            let address = DeviceAddress(["Address": .string("00:AA:01:00:00:42"), "AddressType": .string("public")])
            #expect(address == DeviceAddress(bytes: [0x42, 0, 0, 1, 0xAA, 0], isRandom: false))
            #expect(address?.objectName == "dev_00_AA_01_00_00_42")
            for wrong in ["", "00:AA:01:00:00", "00:AA:01:00:00:4G", "00:AA:01:00:00:42:43", "00:AA:01:00:00:142"] {
                #expect(DeviceAddress(["Address": .string(wrong)]) == nil)
            }
        }
    }

    extension [UInt8] {
        fileprivate func replacing(_ place: Int, with byte: UInt8) -> [UInt8] {
            var copy = self
            copy[place] = byte
            return copy
        }
    }
#endif
