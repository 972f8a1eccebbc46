#if Seal
    import Crypto
    import Ferry
    import FerrySeal
    import Foundation

    /// Prints how fast messages are sealed and opened, beside swift-crypto's own calls in the same run; in release mode:
    /// `swift run -c release --traits Seal seal-speed`.
    @main enum SealSpeed {
        /// The processor's seconds for `count` calls; the shortest of nine rounds, which take turns with those of the other.
        static func seconds(_ count: Int, _ body: (Int) throws -> Void) rethrows -> Double {
            let start = DispatchTime.now().uptimeNanoseconds
            for index in 0..<count { try body(index) }
            return Double(DispatchTime.now().uptimeNanoseconds - start) / 1e9
        }

        static func main() throws {
            let key = SymmetricKey(size: .bits256)
            let (own, theirs) = (SecretKey(), SecretKey())
            print(
                "bytes      seal: library     Ferry  share   open: library     Ferry  share   (ns a message; the best of nine rounds)"
            )
            for (size, count) in [(16, 20_000), (244, 20_000), (4096, 5000), (65_536, 500)] {
                let exchange = SealedExchange(payloads: PayloadFormat(), keepsOrder: true)
                var a = NoiseSealing(connectingAs: own, to: .key(theirs.publicKey)).makeSeal(for: exchange)
                var b = NoiseSealing(acceptingAs: theirs, from: .anyone).makeSeal(for: exchange)
                while let message = try a.nextHandshakeMessage() { try b.receiveHandshake(message) }
                while let message = try b.nextHandshakeMessage() { try a.receiveHandshake(message) }
                let payload = [UInt8](repeating: 7, count: size)
                var best = [Double](repeating: .infinity, count: 5)
                for _ in 0..<9 {
                    var boxes: [ChaChaPoly.SealedBox] = []
                    boxes.reserveCapacity(count)
                    var sealed: [[UInt8]] = []
                    sealed.reserveCapacity(count)
                    var sum = 0
                    let round = [
                        try seconds(count) { index in
                            var nonce = [UInt8](repeating: 0, count: 12)
                            nonce[4] = UInt8(truncatingIfNeeded: index)
                            boxes.append(try ChaChaPoly.seal(payload, using: key, nonce: ChaChaPoly.Nonce(data: nonce)))
                        },
                        try seconds(count) { _ in sealed.append(try a.seal(payload)) },
                        // From the bytes that have come, as a receiver has to.
                        try seconds(count) { index in
                            var nonce = [UInt8](repeating: 0, count: 12)
                            nonce[4] = UInt8(truncatingIfNeeded: index)
                            let box = try ChaChaPoly.SealedBox(
                                nonce: ChaChaPoly.Nonce(data: nonce), ciphertext: boxes[index].ciphertext,
                                tag: boxes[index].tag)
                            sum += try ChaChaPoly.open(box, using: key).count
                        },
                        try seconds(count) { index in sum += try ChaChaPoly.open(boxes[index], using: key).count },
                        try seconds(count) { index in sum += try b.open(sealed[index]).count },
                    ]
                    precondition(sum == 3 * count * size)
                    for index in best.indices { best[index] = min(best[index], round[index] / Double(count) * 1e9) }
                }
                func column(_ value: Double) -> String {
                    String(repeating: " ", count: max(0, 9 - "\(Int(value))".count)) + "\(Int(value))"
                }
                func share(_ library: Double, _ ours: Double) -> String { "  \(Int(100 * library / ours)) %" }
                print(
                    column(Double(size)), column(best[0]), column(best[1]), share(best[0], best[1]), "   ",
                    column(best[2]),
                    column(best[4]), share(best[2], best[4]), "   of its box alone:", column(best[3]),
                    share(best[3], best[4]))
            }
        }
    }
#else
    @main enum SealSpeed {
        static func main() { print("Build with --traits Seal.") }
    }
#endif
