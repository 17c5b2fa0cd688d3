/* Loaded into the binary with LD_PRELOAD: writes down, in order, what the process asks of the files in one directory and
 * when it is told that they are on the disk; and what commands write into a log of effects. From that `it/power.rs`
 * makes the files as a power loss at any moment could have left them. It changes nothing that it records.
 *
 * A record: kind, file, place, length (16-byte head) and the bytes that were written.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct head {
    uint8_t kind; /* w: written, t: cut to a length, s: on the disk, d: deleted, e: an effect */
    uint8_t file; /* b: database, l: log (-wal), j: journal (-journal), h: the directory, 0: none */
    uint16_t unused;
    uint32_t length;
    uint64_t place;
};

static int record = -1;

static void write_record(char kind, char file, uint64_t place, const void *bytes, size_t length) {
    if (record < 0) {
        const char *path = getenv("WONDER_POWER_RECORD");
        if (!path) return;
        record = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (record < 0) return;
    }
    struct head head = {(uint8_t)kind, (uint8_t)file, 0, (uint32_t)length, place};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)bytes, length}};
    /* One call, appended: records of several processes do not mix. */
    if (writev(record, parts, 2) < 0) abort();
}

/* Which of the files that matter it is: SQLite's database, its log, the log of effects; 0 for all others. */
static char file_of_path(const char *path) {
    const char *home = getenv("WONDER_HOME"), *effects = getenv("WONDER_POWER_EFFECTS");
    if (effects && strcmp(path, effects) == 0) return 'e';
    if (!home || strncmp(path, home, strlen(home)) != 0) return 0;
    const char *name = path + strlen(home);
    if (strcmp(name, "/wonder.db") == 0) return 'b';
    if (strcmp(name, "/wonder.db-wal") == 0) return 'l';
    if (strcmp(name, "/wonder.db-journal") == 0) return 'j';
    if (name[0] == 0) return 'h';
    return 0;
}

static char file_of(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return file_of_path(path);
}

static int is_kept(char file) { return file == 'b' || file == 'l' || file == 'j'; }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void written(int fd, const void *bytes, ssize_t length, off_t place) {
    if (length <= 0) return;
    char file = file_of(fd);
    if (file == 'e') write_record('e', 0, 0, bytes, (size_t)length);
    else if (is_kept(file)) write_record('w', file, (uint64_t)place, bytes, (size_t)length);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t place) {
    ssize_t done = REAL(pwrite64)(fd, bytes, length, place);
    written(fd, bytes, done, place);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t place) {
    ssize_t done = REAL(pwrite)(fd, bytes, length, place);
    written(fd, bytes, done, place);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ssize_t done = REAL(write)(fd, bytes, length);
    if (fd != record && done > 0 && file_of(fd)) written(fd, bytes, done, lseek(fd, 0, SEEK_CUR) - done);
    return done;
}

int ftruncate64(int fd, off64_t length) {
    int done = REAL(ftruncate64)(fd, length);
    char file = file_of(fd);
    if (done == 0 && is_kept(file)) write_record('t', file, (uint64_t)length, NULL, 0);
    return done;
}

int ftruncate(int fd, off_t length) {
    int done = REAL(ftruncate)(fd, length);
    char file = file_of(fd);
    if (done == 0 && is_kept(file)) write_record('t', file, (uint64_t)length, NULL, 0);
    return done;
}

static int synced(int fd, int (*sync)(int)) {
    int done = sync(fd);
    char file = file_of(fd);
    if (done == 0 && (is_kept(file) || file == 'h')) write_record('s', file, 0, NULL, 0);
    return done;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }

int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

int unlink(const char *path) {
    char file = file_of_path(path);
    int done = REAL(unlink)(path);
    if (done == 0 && is_kept(file)) write_record('d', file, 0, NULL, 0);
    return done;
}
