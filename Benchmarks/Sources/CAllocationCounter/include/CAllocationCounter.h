#ifndef C_ALLOCATION_COUNTER_H
#define C_ALLOCATION_COUNTER_H

/// The number of allocations that the calling thread has made since it began: every call of malloc, calloc, realloc,
/// posix_memalign, aligned_alloc and memalign. Exact with glibc; elsewhere always 0.
unsigned long ferry_allocation_count(void);

/// Whether allocations are counted on this platform.
int ferry_allocations_are_counted(void);

/// The calling thread's processor time in nanoseconds, so that what else the machine does is left out.
unsigned long long ferry_thread_nanoseconds(void);

#endif
