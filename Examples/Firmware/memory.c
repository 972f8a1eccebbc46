// First fit over a list of blocks in the order of their addresses; neighbours that are free become one.

#include "memory.h"

#include <stdint.h>

// Before each block. `size` counts itself.
typedef struct block {
    size_t size;
    size_t is_free;
} block;

enum { ALIGNMENT = 8, SMALLEST = sizeof(block) + ALIGNMENT };

static uint8_t *start, *end;
static size_t taken, peak, count;

static block *after(block *this) { return (block *)((uint8_t *)this + this->size); }

void memory_use(void *given, size_t bytes) {
    uintptr_t first = ((uintptr_t)given + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    size_t size = (bytes - (first - (uintptr_t)given)) & ~(size_t)(ALIGNMENT - 1);
    start = (uint8_t *)first;
    end = start + size;
    *(block *)start = (block){size, 1};
    taken = peak = count = 0;
}

size_t memory_taken(void) { return taken; }
size_t memory_peak(void) { return peak; }
size_t memory_count(void) { return count; }

int posix_memalign(void **place, size_t alignment, size_t bytes) {
    size_t size = (bytes + sizeof(block) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (size < SMALLEST) { size = SMALLEST; }
    // Swift's objects are aligned to 8 or 16 bytes. A larger alignment moves the block's start within free memory.
    if (start == NULL || size < bytes) { memory_is_full(bytes); }
    for (block *this = (block *)start; (uint8_t *)this < end; this = after(this)) {
        if (!this->is_free) { continue; }
        while ((uint8_t *)after(this) < end && after(this)->is_free) { this->size += after(this)->size; }
        uintptr_t address = (uintptr_t)(this + 1);
        uintptr_t aligned = (address + alignment - 1) & ~(uintptr_t)(alignment - 1);
        if (aligned != address && aligned - address < SMALLEST) { aligned += alignment; }
        size_t before = aligned - address;
        if (this->size < before || this->size - before < size) { continue; }
        if (before > 0) {
            block *second = (block *)(aligned - sizeof(block));
            *second = (block){this->size - before, 1};
            this->size = before;
            this = second;
        }
        if (this->size - size >= SMALLEST) {
            *(block *)((uint8_t *)this + size) = (block){this->size - size, 1};
            this->size = size;
        }
        this->is_free = 0;
        taken += this->size;
        count++;
        if (taken > peak) { peak = taken; }
        *place = this + 1;
        return 0;
    }
    memory_is_full(bytes);
}

void free(void *place) {
    if (place == NULL) { return; }
    block *this = (block *)place - 1;
    this->is_free = 1;
    taken -= this->size;
}
