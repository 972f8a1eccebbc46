#ifndef C_FERRY_CHECKSUM_H
#define C_FERRY_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/// Carries a CRC-32C (RFC 3720, B.4; reflected polynomial 0x82F63B78) on over `count` bytes. Begin with 0.
///
/// The bytes are only read. The processor's own instruction does the work where there is one.
uint32_t ferry_crc32c(uint32_t crc, const void *bytes, size_t count);

/// The same by table alone, for processors without the instruction. Public so that a test can compare the two.
uint32_t ferry_crc32c_by_table(uint32_t crc, const void *bytes, size_t count);

/// The same by a table of 64 bytes in read-only memory, without state: what firmware uses (`-ffreestanding`).
uint32_t ferry_crc32c_by_nibbles(uint32_t crc, const void *bytes, size_t count);

#endif
