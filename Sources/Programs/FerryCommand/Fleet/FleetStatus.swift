#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import Foundation

    /// What `ferry fleet status`, `peers` and `records` are about.
    struct FleetPlace: ParsableArguments {
        @OptionGroup var options: NATSServerOptions
        @Option(help: "The bucket of the fleet's leases.") var fleet = "ferry-leases"
        @Option(help: "The stream that gateways publish to.") var stream = "ferry"

        /// How to reach the servers.
        var servers: NATSConfiguration { options.configuration("ferry fleet") }

        func use<Value: Sendable>(
            _ body: (NATSConnection) async throws(FerryError) -> Value
        ) async throws -> Value {
            do throws(FerryError) { return try await NATSConnection.with(servers, body) } catch {
                throw CommandFailure(error.message)
            }
        }
    }

    extension Fleet {
        /// Prints a table, and what it means that it has no rows.
        private static func show(_ headings: [String], _ rows: [[String]], _ none: String) {
            print(Outbox.aligned([headings] + rows).harmless, terminator: "")
            if rows.isEmpty { print(none) }
        }

        /// `ferry fleet status`: the gateways, and how far consumers are.
        struct Status: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Tells of each gateway of a fleet what it owns, has published and was refused.",
                discussion: "A gateway that has said nothing for as long as a lease lasts is not there any more.")

            @OptionGroup var place: FleetPlace

            func run() async throws {
                let reports = try await place.use { connection throws(FerryError) in
                    try await FleetDirectory.open(place.fleet, on: connection).reports()
                }
                let rows = reports.map { gateway, bytes in
                    guard let report = try? JSONDecoder().decode(GatewayReport.self, from: Data(bytes)) else {
                        return [Outbox.printable(gateway)] + Array(repeating: "?", count: 8) + ["of another version"]
                    }
                    let figures = [
                        report.owned, report.begun, report.published, report.kept, report.waiting, report.refused,
                        report.unanswered, report.late,
                    ]
                    return [Outbox.printable(gateway)] + figures.map(String.init)
                        + [Outbox.printable(report.trouble ?? "-")]
                }
                let headings = [
                    "gateway", "owns", "began", "published", "kept", "in store", "refused", "unanswered", "late",
                    "trouble",
                ]
                Fleet.show(headings, rows, "No gateway of this fleet is there.")
            }
        }

        /// `ferry fleet peers`: who owns whom.
        struct Peers: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Tells who owns each peer of a fleet, under which token, and how well it is heard.")

            @OptionGroup var place: FleetPlace

            func run() async throws {
                let leases = try await place.use { connection throws(FerryError) in
                    try await FleetDirectory.open(place.fleet, on: connection).leases()
                }
                let rows = leases.map { peer, entry in
                    [
                        Outbox.printable(peer), entry.lease.holder?.name ?? "-", "\(entry.token)",
                        "\(entry.lease.score)",
                        entry.lease.holder == nil
                            ? "given up" + (entry.lease.successor.map { " for \($0)" } ?? "") : "held",
                    ]
                }
                Fleet.show(["peer", "owner", "token", "score", "state"], rows, "No peer of this fleet is owned.")
            }
        }

        /// `ferry fleet records`: how far the stream's consumers are.
        struct Records: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                abstract: "Tells what the fleet's stream has, and how far behind each consumer is.")

            @OptionGroup var place: FleetPlace

            func run() async throws {
                let (state, consumers) = try await place.use { connection throws(FerryError) in
                    let state = try await connection.state(of: place.stream)
                    return (state, try await connection.consumers(of: place.stream))
                }
                print(
                    "stream \(place.stream): \(state.messages) messages, \(state.bytes) bytes, the last at "
                        + "\(state.lastSequence)")
                let rows = consumers.map {
                    ["\($0.name)", "\($0.acknowledgedThrough)", "\($0.unacknowledged)", "\($0.pending)"]
                }
                Fleet.show(
                    ["consumer", "acknowledged through", "unacknowledged", "to come"], rows, "No consumer.")
            }
        }
    }
#endif
