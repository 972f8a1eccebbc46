/// The header of an SMP message, for people (Zephyr, `doc/services/device_mgmt/smp_protocol.rst`).
struct SMPHead: CustomStringConvertible {
    static let byteCount = 8

    let isAnswer: Bool
    let length: Int
    let sequence: UInt8
    let description: String

    /// `nil` if `chunk` does not begin with one.
    init?(_ chunk: [UInt8]) {
        guard chunk.count >= Self.byteCount, chunk[0] & 0xE0 == 0, chunk[0] & 7 <= 3, chunk[0] >> 3 <= 1 else {
            return nil
        }
        let operation = chunk[0] & 7
        isAnswer = operation & 1 == 1
        length = Int(chunk[2]) << 8 | Int(chunk[3])
        sequence = chunk[6]
        let group = Int(chunk[4]) << 8 | Int(chunk[5])
        let verb = ["read", "answer to read", "write", "answer to write"][Int(operation)]
        description = "\(verb) \(Self.name(group, Int(chunk[7]))), sequence \(sequence)"
    }

    /// Whether a value begins an SMP message, though nothing else says that it may: a map of CBOR follows the header, the group is
    /// one of Zephyr's, and the value is no longer than the message.
    static func isLikely(_ bytes: [UInt8]) -> Bool {
        guard let head = SMPHead(bytes), bytes.count > byteCount, bytes[1] == 0, bytes[4] == 0 else { return false }
        guard groups.indices.contains(Int(bytes[5])) || bytes[5] == 63 else { return false }
        return bytes[8] >> 5 == 5 && bytes.count <= byteCount + head.length
    }

    private static let groups = [
        "OS", "image", "statistics", "settings", "log", "crash", "split", "run", "files", "shell", "enumeration",
        "transport",
    ]

    private static let commands: [Int: [String]] = [
        0: ["echo", "echo control", "tasks", "pools", "time", "reset", "parameters", "information", "boot loader"],
        1: ["state", "upload", "file", "core list", "core load", "erase", "slots"],
        3: ["value", "delete", "commit", "load or save"],
        8: ["file", "status", "hash", "hash types", "close"],
        9: ["command"],
    ]

    private static func name(_ group: Int, _ command: Int) -> String {
        guard groups.indices.contains(group) else { return "group \(group) command \(command)" }
        let names = commands[group] ?? []
        return "\(groups[group]) \(names.indices.contains(command) ? names[command] : "command \(command)")"
    }
}
