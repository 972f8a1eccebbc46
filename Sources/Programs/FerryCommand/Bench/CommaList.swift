import ArgumentParser
import Ferry

/// Several values of an option, separated by commas.
struct CommaList<Element: LosslessStringConvertible & Hashable & Sendable>: ExpressibleByArgument, Sendable {
    var elements: [Element]

    init(_ elements: [Element]) { self.elements = elements }

    init?(argument: String) {
        var seen: Set<Element> = []
        elements = []
        for part in argument.split(separator: ",", omittingEmptySubsequences: true) {
            guard let element = Element(String(part.filter { $0 != " " })) else { return nil }
            if seen.insert(element).inserted { elements.append(element) }
        }
    }

    var defaultValueDescription: String { elements.map(\.description).joined(separator: ",") }
}
