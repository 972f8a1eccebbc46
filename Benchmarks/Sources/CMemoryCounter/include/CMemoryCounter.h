#ifndef C_MEMORY_COUNTER_H
#define C_MEMORY_COUNTER_H

/// The number of allocations that the calling thread has made since it began: every call of malloc, calloc, realloc,
/// posix_memalign, aligned_alloc and memalign. Exact with glibc; elsewhere always 0.
unsigned long ferry_allocation_count(void);

/// Whether allocations are counted on this platform.
int ferry_allocations_are_counted(void);

/// The calling thread's processor time in nanoseconds, so that what else the machine does is left out.
unsigned long long ferry_thread_nanoseconds(void);

/// The processor time of all threads in nanoseconds.
unsigned long long ferry_process_nanoseconds(void);

/// The bytes that the calling thread has copied by memcpy and memmove since it began; 0 unless the program depends on
/// CCopyCounter.
unsigned long ferry_copied_bytes(void);

/// Whether copies are counted in this program.
int ferry_copies_are_counted(void);

#endif
