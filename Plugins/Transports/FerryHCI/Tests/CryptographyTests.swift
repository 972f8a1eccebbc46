#if HCI
    import TestSupport
    import Testing

    @testable import BluetoothHost
    @testable import FerryHCI

    /// The specification's own sample data (Core Specification 5.4, Vol 3, Part H, 2.2.3, 2.2.4 and Appendix D; Vol 2,
    /// Part G, 7.1.2).
    @Suite(.tags(.adapter)) struct CryptographyTests {
        private let functions = PairingFunctions(cryptography: LibraryCryptography())
        private static let u = hex("20b003d2f297be2c5e2c83a7e9f9a5b9eff49111acf4fddbcc0301480e359de6")
        private static let v = hex("55188b3d32f6bb9a900afcfbeed4e72a59cb9ac2f19d7cfb6b4fdd49f47fc5fd")
        private static let secret = hex("ec0234a357c8ad05341010a60a397d9b99796b13b4f866f1868d34f373bfa698")
        private static let n1 = hex("d5cb8454d177733effffb2ec712baeab")
        private static let n2 = hex("a6e8e7cc25a75f6e216583f7ff3dc4cf")
        private static let a1 = Address(0x5612_3737_BFCE, .public)
        private static let a2 = Address(0xA713_702D_CFC1, .public)

        @Test func f4() {
            #expect(functions.f4(Self.u, Self.v, Self.n1, 0) == hex("f2c916f107a9bd1cf1eda1bea974872d"))
        }

        @Test func f5() {
            let made = functions.f5(Self.secret, Self.n1, Self.n2, Self.a1, Self.a2)
            #expect(made.longTermKey == hex("6986791169d7cd23980522b594750a38"))
            #expect(made.mac == hex("2965f176a1084a02fd3f6a20ce636e20"))
        }

        @Test func f6() {
            let value = functions.f6(
                hex("2965f176a1084a02fd3f6a20ce636e20"), Self.n1, Self.n2, hex("12a3343bb453bb5408da42d20c2d0fc8"),
                hex("010102"), Self.a1, Self.a2)
            #expect(value == hex("e3c473989cd0e8c5d26c0b09da958f61"))
        }

        @Test func g2() {
            #expect(functions.g2(Self.u, Self.v, Self.n1, Self.n2) == 0x2F9E_D5BA % 1_000_000)
        }

        @Test func ah() {
            let key = hex("ec0234a357c8ad05341010a60a397d9b")
            #expect(functions.ah(key, 0x708194) == 0x0DFBAA)
            #expect(functions.resolves(Address(0x7081_940D_FBAA, .random), by: key))
            #expect(!functions.resolves(Address(0x7081_940D_FBAB, .random), by: key))
            #expect(!functions.resolves(Address(0x7081_940D_FBAA, .public), by: key))
        }

        /// The example of a Database Hash (Core Specification 5.4, Vol 3, Part G, Appendix B).
        @Test func databaseHash() {
            let message = hex(
                "010000280018020003280a0300002a04000328020500012a06000028011807000328200800052a090002290a0003280a0b0029"
                    + "2b0c000328020d002a2b0e00002808180f000228140016000f1810000328a2110018"
                    + "2a12000229130000290000140001280f1815000328021600192a")
            #expect(
                LibraryCryptography().aesCMAC(key: [UInt8](repeating: 0, count: 16), message: message)
                    == hex("f1ca2d48ecf58bac8a8830bbb9fba990"))
        }

        @Test func c1AndS1() {
            let value = functions.c1(
                [UInt8](repeating: 0, count: 16), random: hex("5783d52156ad6f0e6388274ec6702ee0"),
                request: hex("07071000000101"), response: hex("05000800000302"),
                initiator: Address(0xA1A2_A3A4_A5A6, .random), responder: Address(0xB1B2_B3B4_B5B6, .public))
            #expect(value == hex("1e1e3fef878988ead2a74dc5bef13b86"))
            #expect(
                functions.s1(
                    [UInt8](repeating: 0, count: 16), hex("000f0e0d0c0b0a091122334455667788"),
                    hex("010203040506070899aabbccddeeff00")) == hex("9a1fe1f0e8b0f49b5b4216ae796da062"))
        }

        @Test func diffieHellman() {
            let x = hex("1ea1f0f01faf1d9609592284f19e4c0047b58afd8615a69f559077b22faaa190")
            let y = hex("4c55f33e429dad377356703a9ab85160472d1130e28e36765f89aff915b1214a")
            let keys = PairingKeyPair(
                secret: hex("3f49f6d4a3c55f3874c9b3e3d2103f504aff607beb40b7995899b8a6cd3c1abd"), x: Self.u,
                y: hex("dc809c49652aeb6d63329abf5a52155c766345c28fed3024741c8ed01589d28b"))
            let library = LibraryCryptography()
            #expect(library.sharedSecret(keys, x: x, y: y) == Self.secret)
            // Not on the curve.
            #expect(library.sharedSecret(keys, x: x, y: x) == nil)
            #expect(library.sharedSecret(keys, x: [], y: []) == nil)
            let (first, second) = (library.makeKeyPair(), library.makeKeyPair())
            #expect(library.sharedSecret(first, x: second.x, y: second.y) != nil)
            #expect(
                library.sharedSecret(first, x: second.x, y: second.y)
                    == library.sharedSecret(second, x: first.x, y: first.y))
        }
    }

    private func hex(_ text: String) -> [UInt8] {
        let digits = Array(text)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    }
#endif
