import ArgumentParser

struct Advise: AsyncParsableCommand {
    func run() async throws {}
}
