import FerryDigest
import TestSupport
import Testing

@Suite(.tags(.codec), .timeLimit(.minutes(5))) struct SHA256Tests {
    private static let message = (0..<300).map { UInt8($0 % 251) }

    /// FIPS 180-2, appendix B, and the empty message.
    @Test(arguments: [
        ("", "e3b0c442 98fc1c14 9afbf4c8 996fb924 27ae41e4 649b934c a495991b 7852b855"),
        ("abc", "ba7816bf 8f01cfea 414140de 5dae2223 b00361a3 96177a9c b410ff61 f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61 d20638b8 e5c02693 0c3e6039 a33ce459 64ff2167 f6ecedd4 19db06c1"
        ),
    ])
    func vectors(_ text: String, _ digest: String) {
        #expect(SHA256.digest(of: Array(text.utf8)) == bytes(digest))
    }

    /// Each length from 0 to 300, so that every kind of padding is met: the digest of all their digests, as Python's hashlib has it.
    @Test func everyLength() {
        let all = (0...300).flatMap { SHA256.digest(of: Array(Self.message.prefix($0))) }
        #expect(SHA256.digest(of: all) == bytes("b90e35153500e9a471591550ee25a954527c6b4448afff95f7949a2ca93300ce"))
    }

    /// Keys from 0 to 140 bytes, shorter than a block and longer: the digest of all, as Python's hmac has it.
    @Test func everyKey() {
        let all = (0...140).flatMap { SHA256.authenticate(Array("Ferry".utf8), key: Array(Self.message.prefix($0))) }
        #expect(SHA256.digest(of: all) == bytes("c2a663cc5a63a82cc2dd4dbc430624942830fd031e0e6fd02dcc29736ba65c79"))
    }

    /// RFC 4231, test cases 1 and 6.
    @Test func keyed() {
        #expect(
            SHA256.authenticate(Array("Hi There".utf8), key: [UInt8](repeating: 0x0B, count: 20))
                == bytes("b0344c61 d8db3853 5ca8afce af0bf12b 881dc200 c9833da7 26e9376c 2e32cff7"))
        #expect(
            SHA256.authenticate(
                Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
                key: [UInt8](repeating: 0xAA, count: 131))
                == bytes("60e43159 1ee0b67f 0d8a26aa cbf5b77f 8e0bc621 3728c514 0546040f 0ee37f54"))
    }
}
