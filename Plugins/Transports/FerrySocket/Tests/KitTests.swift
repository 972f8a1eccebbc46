import Ferry
import FerrySocket
import FerryTesting
import TestSupport
import Testing

/// Sockets pass the kits for links and for transports.
@Suite(.tags(.channel), .timeLimit(.minutes(5))) struct KitTests {
    @Test(arguments: Kind.allCases, LinkConformance.Requirement.allCases)
    func links(_ kind: Kind, _ requirement: LinkConformance.Requirement) async throws {
        let rig = try SocketRig(kind)
        try await LinkConformance(time: .patient) { try await rig.makePair() }.check(requirement)
    }

    @Test(arguments: Kind.allCases, TransportConformance.Requirement.allCases)
    func transports(_ kind: Kind, _ requirement: TransportConformance.Requirement) async throws {
        let rig = try SocketRig(kind)
        try await TransportConformance(time: .patient) {
            .init(listening: rig.transport) { rig.transport }
        }.check(requirement)
    }
}
