public import FerryBluetooth
import FerryCoreBluetooth
import PhoneCardLogic
public import SwiftUI

/// The app's only window: the person's own card, and everybody nearby.
///
///     @main struct PhoneCardApp: App {
///         var body: some Scene { WindowGroup { PhoneCardView() } }
///     }
public struct PhoneCardView: View {
    private let makeAdapter: @MainActor () -> any BluetoothAdapter
    @State private var card = ContactCard()
    @State private var isExchanging = false

    /// A window on the system's Bluetooth.
    public init() { self.init { CoreBluetoothAdapter() } }

    /// A window on another adapter, such as the virtual radio's in a simulator.
    public init(makeAdapter: @escaping @MainActor () -> any BluetoothAdapter) { self.makeAdapter = makeAdapter }

    /// The form, and once it is filled in the people nearby.
    public var body: some View {
        NavigationStack {
            if isExchanging {
                PeopleView(card: card, adapter: makeAdapter()) { isExchanging = false }
            } else {
                Form {
                    TextField("First name", text: $card.givenName)
                    TextField("Last name", text: $card.familyName)
                    TextField("Organization", text: $card.organization)
                    TextField("Telephone", text: $card.phone)
                    TextField("E-mail", text: $card.email)
                    Button("Exchange cards") { isExchanging = true }.disabled(!card.isAcceptable)
                }
            }
        }
    }
}
