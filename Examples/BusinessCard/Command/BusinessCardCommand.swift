import ArgumentParser

@main
struct BusinessCardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "business-card", abstract: "Sends a business card across a small link, chunk by chunk.")

    @OptionGroup var options: CardOptions

    func run() async throws {
        let card = try options.card.map { path throws(CardError) in try CardFile.load(path) } ?? .example
        print(card.displayName)
    }
}
