#if Records
    import Ferry

    extension Epoch {
        /// That of its row in `ferry_opening`.
        var openingChecksum: RowChecksum {
            var checksum = RowChecksum(.opening)
            checksum.add(Int64(generation))
            checksum.add(bits: nonce)
            return checksum
        }
    }

    extension RowChecksum {
        fileprivate mutating func add(_ position: Position?) {
            add(position?.epoch)
            add(position.map { Int64($0.sequence) })
        }

        fileprivate mutating func add(_ epoch: Epoch?) {
            add(epoch.map { Int64($0.generation) })
            add(bits: epoch?.nonce)
        }
    }

    extension Book.Peer {
        var checksum: RowChecksum {
            var checksum = RowChecksum(.peer)
            checksum.add(id)
            checksum.add(name)
            checksum.add(bits: store?.high)
            checksum.add(bits: store?.low)
            checksum.add(certainty.map(Int64.init))
            checksum.add(epoch)
            checksum.add(largestRecord.map(Int64.init))
            // Rows of before schema 4 have neither, and their checksum stays what it was.
            if let key { checksum.add(key) }
            if let met { checksum.add(met) }
            return checksum
        }
    }

    extension Book.Outbound {
        var checksum: RowChecksum {
            var checksum = RowChecksum(.outbound)
            checksum.add(id)
            checksum.add(peer)
            checksum.add(name)
            checksum.add(Int64(last))
            checksum.add(acknowledged)
            for number in [count, bytes, Int(priority)] { checksum.add(Int64(number)) }
            return checksum
        }

        var mark: Mark.Entry { Mark.Entry(direction: .outbound, stream: id, last: last) }
    }

    extension Book.Inbound {
        var checksum: RowChecksum {
            var checksum = RowChecksum(.inbound)
            checksum.add(id)
            checksum.add(peer)
            checksum.add(name)
            checksum.add(position)
            checksum.add(number)
            for number in [count, bytes] { checksum.add(Int64(number)) }
            checksum.add(relayed.map { Int64($0.sequence) })
            checksum.add(relayed.map { Int64($0.time) })
            return checksum
        }

        var mark: Mark.Entry { Mark.Entry(direction: .inbound, stream: id, last: UInt64(number)) }
    }
#endif
