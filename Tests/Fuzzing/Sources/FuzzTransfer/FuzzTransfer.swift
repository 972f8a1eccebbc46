import Ferry
import FuzzDriver

/// The two ends of a transfer of files, each against arbitrary messages and against the other, under libFuzzer. The sources of
/// the ends are those of `ferry send` and `ferry receive`.
///
/// An input is a list of steps, each a byte and what it needs:
///
///     0...95     a message of so many bytes arrives at the receiver
///     96...191   a message of that less 96 bytes arrives at the sender
///     192...207  the receiver's disk answers: nothing there, a part or a file there, a question, a refusal, a folder
///     208...223  the sender's caller goes on: it greets, names an item, proves, sends, ends, gives up or leaves
///     224...239  the sender's last message arrives at the receiver, and each step of the receiver is carried out
///     240...255  the receiver's last answer arrives at the sender
///
/// Nothing may trap; a message is read as it was written; a file is finished with the bytes that were written to it and no
/// others; "done" is heard only where an item was sent to its end; and no name leads out of the folder.
struct Play {
    private var inbox = TransferInbox()
    private var outbox = TransferOutbox()

    // The receiver's disk, as far as a test has to know it.
    private var there: TransferContent?
    private var written = TransferContent()
    private var isLines = false
    /// The step that the receiver waits for; others at that moment must change nothing.
    private var expected = Expected.nothing

    private enum Expected { case nothing, look, compare }
    private var answer: TransferMessage?

    // The sender's caller.
    private var sent: TransferMessage?
    /// Whether "done" may be heard: the item was sent to its end, or needs no data.
    private var mayBeDone = false
    private var asked: UInt64?
    private var compared: (content: TransferContent, isWhole: Bool)?

    mutating func run(_ input: UnsafeRawBufferPointer) {
        var rest = input
        while let step = rest.first {
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst())
            switch step {
            case 0..<96: receive(take(Int(step), &rest))
            case 96..<192: hear(take(Int(step - 96), &rest))
            case 192..<208: settle(step & 7)
            case 208..<224: goOn(step & 15, &rest)
            case 224..<240:
                if let sent { receive(sent.encoded) }
                sent = nil
            default:
                if let answer { hear(answer.encoded) }
                answer = nil
            }
        }
    }

    private func take(_ count: Int, _ rest: inout UnsafeRawBufferPointer) -> [UInt8] {
        let count = min(count, rest.count)
        defer { rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
        return Array(rest[..<count])
    }

    private func read(_ bytes: [UInt8]) -> TransferMessage? {
        guard let message = try? TransferMessage(bytes) else { return nil }
        precondition((try? TransferMessage(message.encoded)) == message, "\(bytes) is not read as it is written")
        return message
    }

    // MARK: The receiver

    private mutating func receive(_ bytes: [UInt8]) {
        guard let message = read(bytes) else { return }
        let before = inbox.progress?.count ?? 0
        let action: TransferInbox.Action
        expected = .nothing
        do { action = try inbox.receive(message) } catch {
            // The connection ends, and another begins.
            inbox = TransferInbox()
            return
        }
        switch action {
        case .welcome: answer = .welcome(version: TransferMessage.version)
        case .look(let item):
            isLines = item.kind == .lines
            (there, written) = (nil, TransferContent())
            expected = .look
            if let parts = TransferName.parts(item.name) {
                precondition(parts.joined(separator: "/").utf8.elementsEqual(item.name.utf8))
                precondition(parts.allSatisfy { !$0.utf8.contains(0x2F) && !["", ".", ".."].contains($0) })
            }
        case .compare: expected = .compare
        case .begin(_, let offset):
            precondition(offset == 0 || offset == there?.count, "from \(offset) of \(there?.count ?? 0)")
            written = offset == 0 ? TransferContent() : there ?? TransferContent()
        case .write(let bytes):
            written.add(bytes)
            if isLines { written.add([10]) }
            precondition(inbox.progress?.count == written.count && written.count >= before)
        case .finish(_, let content):
            precondition(content == written, "\(content) is finished and \(written) was written")
            answer = .done
        case .alreadyThere(_, let content):
            precondition(content == there, "\(content) is said to be there")
            answer = .done
        case .damaged, .givenUp: answer = .refused("no")
        case .passOver: break
        case .end: precondition(inbox.hasEnded)
        }
    }

    /// What a disk may say at any moment: an answer that was not asked for changes nothing.
    private mutating func settle(_ choice: UInt8) {
        switch choice {
        case 0:
            inbox.settle()
            if expected == .look { answer = .done }
        case 1:
            inbox.refuse()
            answer = .refused("no")
        case 2, 3:
            inbox.ask(count: 9, isWhole: choice == 2)
            if expected == .look { answer = .prove(count: 9) }
        default:
            var content = TransferContent()
            if choice > 4 { content.add(Array("123456789".utf8)[..<Int(choice)]) }
            inbox.offer(content, isWhole: choice == 7)
            guard expected != .nothing else { return }
            there = content
            answer = .have(content, isWhole: choice == 7)
        }
        if expected == .look || choice == 1 || choice > 3 { expected = .nothing }
    }

    // MARK: The sender

    private mutating func hear(_ bytes: [UInt8]) {
        guard let message = read(bytes) else { return }
        let action: TransferOutbox.Action
        do { action = try outbox.receive(message) } catch {
            outbox = TransferOutbox()
            mayBeDone = false
            return
        }
        (asked, compared) = (nil, nil)
        switch action {
        case .done: precondition(mayBeDone, "\"done\" is believed of what was not sent")
        case .prove(let count): asked = count
        case .compare(let content, let isWhole): compared = (content, isWhole)
        case .start, .refused, .stop: break
        }
        if case .stop = action { return }
        if asked == nil, compared == nil { mayBeDone = false }
    }

    private mutating func goOn(_ choice: UInt8, _ rest: inout UnsafeRawBufferPointer) {
        let digits = Array("123456789".utf8)
        var content = TransferContent()
        content.add(digits[...])
        switch choice {
        case 0:
            outbox = TransferOutbox()
            mayBeDone = false
            sent = outbox.greet()
        case 1..<5:
            guard let kind = TransferItem.Kind(rawValue: choice - 1) else { return }
            let name = String(decoding: take(3, &rest), as: UTF8.self)
            mayBeDone = kind == .folder
            sent = outbox.name(
                TransferItem(kind: kind, mode: UInt16(choice), size: kind == .file ? 9 : nil, name: name))
        case 5:
            guard let asked else { return }
            if asked > 9 { content = TransferContent() }
            sent = outbox.prove(content)
            self.asked = nil
        case 6, 7:
            guard let (there, isWhole) = compared else { return }
            let plan = TransferPlan(
                there: there, isWhole: isWhole, own: choice == 6 ? content : nil, size: choice == 6 ? 9 : nil)
            mayBeDone = plan == .confirm
            sent = outbox.decide(plan, there)
            compared = nil
        case 8, 9: sent = .data(digits[..<Int(choice)])
        case 10, 11:
            // The end is only sent where data was: after a plan to send.
            mayBeDone = true
            sent = outbox.finish(content)
        case 12: sent = outbox.leave()
        default:
            mayBeDone = false
            sent = outbox.giveUp("no")
        }
    }
}

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var play = Play()
    play.run(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

@main enum Main {
    static func main() {
        runFuzzer { fuzzOneInput($0, $1) }
    }
}
