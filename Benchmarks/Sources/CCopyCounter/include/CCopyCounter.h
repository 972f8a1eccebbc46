#ifndef C_COPY_COUNTER_H
#define C_COPY_COUNTER_H

/// The bytes that the calling thread has copied by memcpy and memmove since it began. glibc only.
unsigned long ferry_copy_counter(void);

#endif
