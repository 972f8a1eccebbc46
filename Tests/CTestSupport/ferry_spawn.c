#define _GNU_SOURCE
#include "ferry_spawn.h"

#include <signal.h>
#include <spawn.h>
#include <stddef.h>

int ferry_spawn(
    pid_t *identifier, const char *path, char *const *arguments, char *const *environment, const char *folder,
    const int descriptors[3]) {
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    for (int number = 0; !code && number < 3; number++)
        code = posix_spawn_file_actions_adddup2(&actions, descriptors[number], number);
    if (!code && folder) code = posix_spawn_file_actions_addchdir_np(&actions, folder);
#ifndef __APPLE__
    if (!code) code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
    posix_spawnattr_t attributes;
    int failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        sigset_t all, none;
        sigfillset(&all);
        sigemptyset(&none);
        short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP;
#ifdef __APPLE__
        flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
        if (!code) code = posix_spawnattr_setsigdefault(&attributes, &all);
        if (!code) code = posix_spawnattr_setsigmask(&attributes, &none);
        if (!code) code = posix_spawnattr_setpgroup(&attributes, 0);
        if (!code) code = posix_spawnattr_setflags(&attributes, flags);
        if (!code) code = posix_spawn(identifier, path, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return code ? code : failed;
}
