/* Loaded into the binary with LD_PRELOAD: a disk that does not work while a file says so. `WONDER_FAULTS` names that file;
 * while it is there its first letter says what fails on the files of SQLite: w, writing with EIO; f, writing with ENOSPC;
 * s, syncing with EIO.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_database(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, "/wonder.db") != NULL;
}

/* The error of this moment, or 0. */
static int fault(int fd, int syncs) {
    const char *switch_file = getenv("WONDER_FAULTS");
    char kind = 0;
    if (!switch_file || !is_database(fd)) return 0;
    int file = open(switch_file, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, &kind, 1) != 1) kind = 0;
    close(file);
    if (syncs) return kind == 's' ? EIO : 0;
    return kind == 'w' ? EIO : kind == 'f' ? ENOSPC : 0;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t place) {
    if ((errno = fault(fd, 0))) return -1;
    return REAL(pwrite64)(fd, bytes, length, place);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t place) {
    if ((errno = fault(fd, 0))) return -1;
    return REAL(pwrite)(fd, bytes, length, place);
}

int fsync(int fd) {
    if ((errno = fault(fd, 1))) return -1;
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    if ((errno = fault(fd, 1))) return -1;
    return REAL(fdatasync)(fd);
}
