import Foundation

/// How many notifications a second the LE host sends and receives on one core, with a controller in the same process
/// that takes everything at once: what the host itself costs, without sockets and without a radio. Then what a channel over
/// two of them takes, beside one over nothing.
///
/// With a number as argument the run fails when a direction is slower, by processor time, than so many a second.
let floor = CommandLine.arguments.dropFirst().first.flatMap { Double($0) } ?? 0
var isFastEnough = true
for length in [20, 244] {
    for direction in Direction.allCases {
        // The best of three: what else the machine does only ever slows a run.
        let rates = (0..<3).map { _ in measure(direction, length: length, count: 1_000_000) }
        let best = rates.max() ?? 0
        isFastEnough = isFastEnough && best >= floor
        print(
            "\(direction.rawValue) \(length) bytes: \(Int(best / 1_000)) 000 notifications a second of processor time, "
                + "\(Int(1e9 / best)) ns each")
    }
}
for (name, crossesHosts) in [("the channel alone", false), ("the channel over two hosts", true)] {
    let nanoseconds = try await measureChannel(crossesHosts: crossesHosts, chunkSize: 244)
    print("\(name), chunks of 244 bytes: \(Int(nanoseconds)) ns of processor time each")
}
if !isFastEnough {
    print("slower than \(Int(floor)) a second")
    exit(1)
}

/// Of this thread.
func processorSeconds() -> Double { seconds(CLOCK_THREAD_CPUTIME_ID) }

/// Of all threads.
func processSeconds() -> Double { seconds(CLOCK_PROCESS_CPUTIME_ID) }

private func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func measure(_ direction: Direction, length: Int, count: Int) -> Double {
    var sink = Sink(length: length)
    let started = processorSeconds()
    let done = direction == .send ? sink.send(count) : sink.receive(count)
    let seconds = processorSeconds() - started
    guard done == count else {
        print("only \(done) of \(count) notifications passed")
        exit(1)
    }
    return Double(count) / seconds
}
