/* The memory of Ferry's sessions: one array of the program's. Defines posix_memalign and free, which the library calls.
 *
 * A program that has a heap of its own leaves memory.c out. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stddef.h>

/* Gives the array, before the first session is created. Call it once, or when no session is left. */
void memory_use(void *start, size_t bytes);
/* Bytes of the array that are taken now, and the most that were: the allocator's own included. */
size_t memory_taken(void);
size_t memory_peak(void);
/* How many times memory has been taken since memory_use. */
size_t memory_count(void);
/* Called when the array is full; it must not return. The library cannot go on without memory. */
_Noreturn void memory_is_full(size_t bytes);

#endif
