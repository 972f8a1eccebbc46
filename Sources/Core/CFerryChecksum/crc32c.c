// Why C: the CRC instruction is out of Swift's reach, and at 10 million chunks a second the checksum is most of the work.

#include "CFerryChecksum.h"

uint32_t ferry_crc32c_by_nibbles(uint32_t crc, const void *bytes, size_t count) {
    static const uint32_t sixteen[16] = {
        0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
        0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
    };
    const uint8_t *next = bytes;
    crc = ~crc;
    for (; count > 0; count--, next++) {
        crc ^= *next;
        crc = sixteen[crc & 15] ^ (crc >> 4);
        crc = sixteen[crc & 15] ^ (crc >> 4);
    }
    return ~crc;
}

#if !__STDC_HOSTED__

// Firmware: a table of 8 KiB that is filled at run time would be most of a small controller's memory.
uint32_t ferry_crc32c(uint32_t crc, const void *bytes, size_t count) { return ferry_crc32c_by_nibbles(crc, bytes, count); }

uint32_t ferry_crc32c_by_table(uint32_t crc, const void *bytes, size_t count) {
    return ferry_crc32c_by_nibbles(crc, bytes, count);
}

#else

#include <stdatomic.h>
#include <string.h>

static uint32_t table[8][256];
static atomic_int table_is_ready;

// Two threads may fill the table at once; they write the same values.
static void prepare_table(void) {
    if (atomic_load_explicit(&table_is_ready, memory_order_acquire)) { return; }
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) { crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1))); }
        __atomic_store_n(&table[0][byte], crc, __ATOMIC_RELAXED);
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = __atomic_load_n(&table[0][byte], __ATOMIC_RELAXED);
        for (int slice = 1; slice < 8; slice++) {
            crc = __atomic_load_n(&table[0][crc & 0xFF], __ATOMIC_RELAXED) ^ (crc >> 8);
            __atomic_store_n(&table[slice][byte], crc, __ATOMIC_RELAXED);
        }
    }
    atomic_store_explicit(&table_is_ready, 1, memory_order_release);
}

uint32_t ferry_crc32c_by_table(uint32_t crc, const void *bytes, size_t count) {
    prepare_table();
    const uint8_t *next = bytes;
    crc = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint32_t low = crc ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16
                              | (uint32_t)next[3] << 24);
        crc = table[7][low & 0xFF] ^ table[6][(low >> 8) & 0xFF] ^ table[5][(low >> 16) & 0xFF] ^ table[4][low >> 24]
            ^ table[3][next[4]] ^ table[2][next[5]] ^ table[1][next[6]] ^ table[0][next[7]];
    }
    for (; count > 0; count--, next++) { crc = table[0][(crc ^ *next) & 0xFF] ^ (crc >> 8); }
    return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>
#include <wmmintrin.h>

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *next, size_t count) {
    uint64_t wide = crc;
    for (; count >= 8; count -= 8, next += 8) { wide = _mm_crc32_u64(wide, word_at(next)); }
    uint32_t narrow = (uint32_t)wide;
    for (; count > 0; count--, next++) { narrow = _mm_crc32_u8(narrow, *next); }
    return narrow;
}

// The instruction takes three cycles and one may begin in each, so three lanes are summed at once. The first two are then
// carried over what follows them by a carry-less product with a power of x, and reduced together with the last word
// (Gopal et al., Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction, Intel 2011).
// A long lane wastes less on the carrying; what is left goes by short ones.
enum { LONG = 1360, SHORT = 168 };
enum { LONG_BLOCK = 3 * LONG + 8, SHORT_BLOCK = 3 * SHORT + 8 };

// `over_two` and `over_one` are x^(8 * (2 * lane + 8) - 33) and x^(8 * (lane + 8) - 33) modulo the polynomial, reflected.
__attribute__((target("sse4.2,pclmul"), always_inline)) static inline uint32_t lanes(
    uint32_t crc, const uint8_t *next, size_t lane, int64_t over_two, int64_t over_one) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t place = 0; place < lane; place += 8) {
        first = _mm_crc32_u64(first, word_at(next + place));
        second = _mm_crc32_u64(second, word_at(next + lane + place));
        third = _mm_crc32_u64(third, word_at(next + 2 * lane + place));
    }
    __m128i one = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)first), _mm_cvtsi64_si128(over_two), 0);
    __m128i two = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)second), _mm_cvtsi64_si128(over_one), 0);
    uint64_t carried = (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(one, two));
    return (uint32_t)_mm_crc32_u64(third, word_at(next + 3 * lane) ^ carried);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t by_lanes(uint32_t crc, const uint8_t *next, size_t count) {
    for (; count >= LONG_BLOCK; count -= LONG_BLOCK, next += LONG_BLOCK) {
        crc = lanes(crc, next, LONG, 0x7b454cb3, 0x79113270);
    }
    for (; count >= SHORT_BLOCK; count -= SHORT_BLOCK, next += SHORT_BLOCK) {
        crc = lanes(crc, next, SHORT, 0x8f158014, 0xdaece73e);
    }
    return by_instruction(crc, next, count);
}

uint32_t ferry_crc32c(uint32_t crc, const void *bytes, size_t count) {
    if (count >= SHORT_BLOCK && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2")) {
        return ~by_lanes(~crc, bytes, count);
    }
    if (__builtin_cpu_supports("sse4.2")) { return ~by_instruction(~crc, bytes, count); }
    return ferry_crc32c_by_table(crc, bytes, count);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)

#include <arm_acle.h>

uint32_t ferry_crc32c(uint32_t crc, const void *bytes, size_t count) {
    const uint8_t *next = bytes;
    crc = ~crc;
    for (; count >= 8; count -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, 8);
        crc = __crc32cd(crc, word);
    }
    for (; count > 0; count--, next++) { crc = __crc32cb(crc, *next); }
    return ~crc;
}

#else

uint32_t ferry_crc32c(uint32_t crc, const void *bytes, size_t count) {
    return ferry_crc32c_by_table(crc, bytes, count);
}

#endif

#endif
