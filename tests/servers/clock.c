/* Sets the wall clock of whoever loads it off by the seconds in a file. All other clocks, and sleeps, are the
 * kernel's: libfaketime, which also turns those, keeps Python from waking. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t offset_s(void) {
    static volatile int64_t *shared;
    if (!shared) {
        int file = open(OFFSET, O_RDONLY | O_CLOEXEC);
        void *found = file < 0 ? MAP_FAILED : mmap(0, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0)
            close(file);
        if (found == MAP_FAILED)
            return 0;
        shared = found;
    }
    return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += offset_s();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed && now)
        now->tv_sec += offset_s();
    return failed;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept)
        *kept = now.tv_sec;
    return now.tv_sec;
}
