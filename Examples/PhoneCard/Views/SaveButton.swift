import Contacts
import Foundation
import PhoneCardLogic
import SwiftUI

/// Puts a card into Contacts, once the person asks for it.
struct SaveButton: View {
    let card: ContactCard
    @State private var outcome: String?

    var body: some View {
        VStack {
            Text(card.displayName)
            if let outcome { Text(outcome) } else { Button("Add to Contacts") { Task { await save() } } }
        }
    }

    private func save() async {
        do {
            guard try await CNContactStore().requestAccess(for: .contacts) else {
                outcome = "This app may not use Contacts. Allow it in Settings, Privacy & Security, Contacts."
                return
            }
            try Self.add(card)
            outcome = "In Contacts"
        } catch {
            outcome = "Contacts did not take the card: \(error.localizedDescription)"
        }
    }

    /// Contacts reads the vCard, and stores what it has read.
    private static func add(_ card: ContactCard) throws {
        let request = CNSaveRequest()
        for contact in try CNContactVCardSerialization.contacts(with: Data(card.vCard.utf8)) {
            if let contact = contact.mutableCopy() as? CNMutableContact {
                request.add(contact, toContainerWithIdentifier: nil)
            }
        }
        try CNContactStore().execute(request)
    }
}
