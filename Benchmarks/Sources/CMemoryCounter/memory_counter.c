#include "CMemoryCounter.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

#if defined(__GLIBC__)

// The program's own definitions take the place of the C library's for the whole process; glibc exports what they were
// under names with this prefix.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static _Thread_local __attribute__((tls_model("initial-exec"))) unsigned long allocations;

void *malloc(size_t size) {
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size) {
    allocations++;
    return __libc_realloc(pointer, size);
}

void *memalign(size_t alignment, size_t size) {
    allocations++;
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *pointer = memalign(alignment, size);
    if (pointer == NULL) return ENOMEM;
    *result = pointer;
    return 0;
}

unsigned long ferry_allocation_count(void) { return allocations; }
int ferry_allocations_are_counted(void) { return 1; }

// Defined by the target CCopyCounter, in programs that depend on it.
extern unsigned long ferry_copy_counter(void) __attribute__((weak));

unsigned long ferry_copied_bytes(void) { return ferry_copy_counter ? ferry_copy_counter() : 0; }
int ferry_copies_are_counted(void) { return ferry_copy_counter ? 1 : 0; }

#else

unsigned long ferry_allocation_count(void) { return 0; }
int ferry_allocations_are_counted(void) { return 0; }
unsigned long ferry_copied_bytes(void) { return 0; }
int ferry_copies_are_counted(void) { return 0; }

#endif

unsigned long long ferry_thread_nanoseconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return 0;
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

unsigned long long ferry_process_nanoseconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) return 0;
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}
