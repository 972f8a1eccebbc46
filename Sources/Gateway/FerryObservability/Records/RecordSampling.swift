#if Observability
    /// Which records are traced, and in which trace each of them is: both follow from the record's name alone, so that peers,
    /// gateways and consumers agree without telling each other.
    ///
    /// Of the name's bytes the FNV-1a hash of 128 bits is made. It is the trace's id. Its halves, combined by exclusive or and mixed by
    /// MurmurHash3's 64-bit finalizer, are the id of the span that all of the record's spans have for their parent, which is never
    /// exported; and a record is traced when that number is divisible by ``oneIn``.
    public struct RecordSampling: Sendable, Hashable {
        /// One record in this many is traced; 1 for each, 0 for none.
        public let oneIn: Int

        private init(_ number: Int) { oneIn = number }

        /// Traces one record in `number`; less than 1 counts as 1.
        public static func oneIn(_ number: Int) -> RecordSampling { RecordSampling(max(1, number)) }

        /// None is traced.
        public static let none = RecordSampling(0)

        /// Whether the record of this name is traced.
        public func takes(_ name: String) -> Bool {
            switch oneIn {
            case 0: false
            case 1: true
            default: Self.mixed(Self.hash(name)) % UInt64(oneIn) == 0
            }
        }

        /// Which trace the record of this name is in, as W3C's Trace Context (level 1, section 3.2) writes it in the header
        /// `traceparent`: sampled.
        public static func traceparent(of name: String) -> String {
            let hash = hash(name)
            // Zero is no id.
            let trace =
                digits(UInt64(truncatingIfNeeded: hash >> 64)) + digits(UInt64(truncatingIfNeeded: max(hash, 1)))
            return "00-\(trace)-\(digits(max(mixed(hash), 1)))-01"
        }

        private static func hash(_ name: String) -> UInt128 {
            var hash: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
            for byte in name.utf8 { hash = (hash ^ UInt128(byte)) &* 0x0000_0000_0100_0000_0000_0000_0000_013B }
            return hash
        }

        private static func mixed(_ hash: UInt128) -> UInt64 {
            var bits = UInt64(truncatingIfNeeded: hash >> 64) ^ UInt64(truncatingIfNeeded: hash)
            bits = (bits ^ (bits >> 33)) &* 0xFF51_AFD7_ED55_8CCD
            bits = (bits ^ (bits >> 33)) &* 0xC4CE_B9FE_1A85_EC53
            return bits ^ (bits >> 33)
        }

        private static func digits(_ number: UInt64) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
    }
#endif
