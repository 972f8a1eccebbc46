import Ferry

/// What a link leaves to the next one between the same two peers: nothing but who they are.
extension LinkRig {
    func endedLinksAreInert(_ makeNext: () async throws -> LinkRig) async throws {
        activate()
        try await end()
        let next = try await makeNext()
        next.activate()
        try await next.exchange(1)
        for (link, end) in [(near, "this end's"), (far, "the far end's")] {
            let ghost: [UInt8] = [0x67, 0x68, 0x6F, 0x73, 0x74]
            var isRefused = false
            do throws(FerryError) { _ = try link.trySend(ghost.span.bytes) } catch { isRefused = true }
            try require(isRefused, name, "\(end) ended link took a chunk while the next link was there")
            link.setReceiving(false)
            try require(!link.replaceConnection(), name, "\(end) ended link would replace a connection")
            link.close()
        }
        await time.pass(.seconds(1))
        try await next.exchange(2)
        for reason in next.nearWitness.reasons + next.farWitness.reasons {
            throw ConformanceFailure(name, "what an ended link was asked ended the next one: \(reason)")
        }
        next.near.close()
        next.far.close()
    }

    func peersStayWhoTheyAre(_ makeNext: () async throws -> LinkRig) async throws {
        var known = [near.peer, far.peer]
        func look(_ when: String) throws {
            for (place, link) in [near, far].enumerated() {
                let (former, peer) = (known[place], link.peer)
                try require(
                    peer.name == former.name && peer.certainty >= former.certainty, name,
                    "peer was \(former), and is \(peer) \(when)")
                known[place] = peer
            }
        }
        activate()
        try await exchange(1)
        try look("once chunks have crossed")
        try await end()
        try look("after the end")
        let next = try await makeNext()
        next.activate()
        try await next.exchange(1)
        try look("while the next link is there")
        for (former, peer) in zip(known, [next.near.peer, next.far.peer]) {
            let isKnown = former.certainty > .connection && peer.certainty > .connection
            try require(
                !isKnown || former.name == peer.name, name, "peer was \(former), and is \(peer) on the next link")
        }
        next.near.close()
        next.far.close()
    }

    func endsHaveTwoRoles() async throws {
        let roles = [near.role, far.role]
        func look(_ when: String) throws {
            try require(
                [near.role, far.role] == roles, name, "role was \(roles), and is \([near.role, far.role]) \(when)")
        }
        if let here = roles[0], let there = roles[1] {
            try require(here != there, name, "role is \(here) at both ends; one of them has connected")
        }
        activate()
        try await exchange(1)
        try look("once chunks have crossed")
        try await end()
        try look("after the end")
    }

    private func end() async throws {
        await time.pass(.milliseconds(200))
        near.close()
        try await time.wait(name, for: "linkDidClose at both ends") {
            !nearWitness.reasons.isEmpty && !farWitness.reasons.isEmpty
        }
    }

    /// So many chunks have crossed in each direction afterwards, and nothing else.
    private func exchange(_ count: Int) async throws {
        let last = UInt8(count)
        try await send([last])
        try await time.wait(name, for: "space for a chunk from the far end") {
            (try? far.trySend([last].span.bytes)) == true
        }
        let expected = (1...last).map { [$0] }
        for (witness, end) in [(farWitness, "the far end"), (nearWitness, "this end")] {
            try await time.wait(name, for: "\(count) chunks at \(end); \(witness.chunks.count) came") {
                witness.chunks.count >= count
            }
            try require(witness.chunks == expected, name, "\(end) got \(witness.chunks), and was sent \(expected)")
        }
    }
}
