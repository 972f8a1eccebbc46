#ifndef FERRY_SPAWN_H
#define FERRY_SPAWN_H

#include <sys/types.h>

/// Starts a program (posix_spawn(3)), first of a process group, with a descriptor for each of the three standard streams and no
/// other, that ignores no signal and blocks none. What it needs of glibc beyond POSIX, Swift does not import.
///
/// - Parameter folder: the folder that it works in, or NULL for the caller's.
/// - Returns: 0, or what stands in the way (errno(3)).
int ferry_spawn(
    pid_t *identifier, const char *path, char *const *arguments, char *const *environment, const char *folder,
    const int descriptors[3]);

#endif
