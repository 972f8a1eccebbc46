// What libferry.a needs of a C library, for WebAssembly without one. scripts/firmware javascript links it.

typedef __SIZE_TYPE__ size_t;
typedef __UINT64_TYPE__ uint64_t;

// Memory: blocks of powers of two, with a list of free ones for each power. A header before each block holds its power. What is
// freed goes to its list and never back to the browser; a session's limits bound what is taken at once.
enum { HEADER = 16, SMALLEST = 5, LARGEST = 26, PAGE = 65536 };

typedef struct block {
    struct block *next;
    unsigned power;
} block;

extern unsigned char __heap_base;
static unsigned char *end;
static block *lists[LARGEST + 1];

int posix_memalign(void **place, size_t alignment, size_t count) {
    if (alignment > HEADER || count > (1u << LARGEST) - HEADER) { return 22; }
    unsigned power = SMALLEST;
    while ((1u << power) < count + HEADER) { power++; }
    block *found = lists[power];
    if (found) {
        lists[power] = found->next;
    } else {
        if (!end) { end = (unsigned char *)(((size_t)&__heap_base + HEADER - 1) & ~(size_t)(HEADER - 1)); }
        size_t needed = (size_t)end + (1u << power), there = __builtin_wasm_memory_size(0) * PAGE;
        if (needed > there && __builtin_wasm_memory_grow(0, (needed - there + PAGE - 1) / PAGE) == (size_t)-1) { return 12; }
        found = (block *)end;
        end += 1u << power;
    }
    found->power = power;
    *place = (unsigned char *)found + HEADER;
    return 0;
}

void free(void *memory) {
    if (!memory) { return; }
    block *freed = (block *)((unsigned char *)memory - HEADER);
    freed->next = lists[freed->power];
    lists[freed->power] = freed;
}

// For JavaScript: places for buffers.
void *ferry_allocate(size_t count) {
    void *place;
    return posix_memalign(&place, HEADER, count) == 0 ? place : 0;
}
void ferry_free(void *memory) { free(memory); }

// The instructions of bulk memory do these.
void *memcpy(void *to, const void *from, size_t count) { return __builtin_memcpy(to, from, count); }
void *memmove(void *to, const void *from, size_t count) { return __builtin_memmove(to, from, count); }
void *memset(void *to, int value, size_t count) { return __builtin_memset(to, value, count); }
int memcmp(const void *a, const void *b, size_t count) {
    const unsigned char *one = a, *two = b;
    for (; count; count--, one++, two++) {
        if (*one != *two) { return *one - *two; }
    }
    return 0;
}

int putchar(int character) { return character; }
// Seeds hash tables, whose keys this side numbers itself.
void arc4random_buf(void *to, size_t count) { memset(to, 4, count); }
unsigned __stack_chk_guard = 0x5AFE57AC;
_Noreturn void __stack_chk_fail(void) { __builtin_trap(); }

// The compiler's helpers for numbers of 128 bits, which durations are.
typedef __int128 wide;
typedef unsigned __int128 unsigned_wide;
typedef union {
    unsigned_wide whole;
    struct {
        uint64_t low, high;
    };
} halves;

unsigned_wide __ashlti3(unsigned_wide number, int count) {
    halves from = {number}, to;
    if (count == 0) { return number; }
    to.low = count < 64 ? from.low << count : 0;
    to.high = count < 64 ? from.high << count | from.low >> (64 - count) : from.low << (count - 64);
    return to.whole;
}
unsigned_wide __lshrti3(unsigned_wide number, int count) {
    halves from = {number}, to;
    if (count == 0) { return number; }
    to.high = count < 64 ? from.high >> count : 0;
    to.low = count < 64 ? from.low >> count | from.high << (64 - count) : from.high >> (count - 64);
    return to.whole;
}
wide __multi3(wide a, wide b) {
    halves one = {(unsigned_wide)a}, two = {(unsigned_wide)b}, result;
    const uint64_t mask = 0xFFFFFFFF;
    uint64_t low = (one.low & mask) * (two.low & mask), cross = (one.low >> 32) * (two.low & mask) + (low >> 32);
    uint64_t other = (one.low & mask) * (two.low >> 32) + (cross & mask);
    result.low = other << 32 | (low & mask);
    result.high = (one.low >> 32) * (two.low >> 32) + (cross >> 32) + (other >> 32) + one.low * two.high + one.high * two.low;
    return (wide)result.whole;
}
unsigned_wide __udivti3(unsigned_wide number, unsigned_wide divisor) {
    halves quotient = {0}, from = {number};
    unsigned_wide rest = 0;
    for (int bit = 127; bit >= 0; bit--) {
        rest = rest << 1 | ((bit < 64 ? from.low >> bit : from.high >> (bit - 64)) & 1);
        if (rest >= divisor) {
            rest -= divisor;
            if (bit < 64) { quotient.low |= 1ull << bit; } else { quotient.high |= 1ull << (bit - 64); }
        }
    }
    return quotient.whole;
}
wide __divti3(wide number, wide divisor) {
    unsigned_wide a = number < 0 ? -(unsigned_wide)number : (unsigned_wide)number;
    unsigned_wide b = divisor < 0 ? -(unsigned_wide)divisor : (unsigned_wide)divisor;
    unsigned_wide quotient = __udivti3(a, b);
    return (wide)((number < 0) == (divisor < 0) ? quotient : -quotient);
}
