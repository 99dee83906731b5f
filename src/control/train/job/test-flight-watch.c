/* test-flight-watch.c - the records of PyTorch's flight recorder are asked for, and read. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/file.h"
#include "train/job/flight_watch.h"

#define SEC NSEC_PER_SEC

/* The least that is a record: {"entries": [{"profiling_name": "nccl:all_reduce",
 * "collective_seq_id": N, "process_group": ("0", "default_pg"), "state": "started"}]}. */
#define RECORD(n)                                                                                  \
    "\x80\x02}(X\x07\x00\x00\x00"                                                                  \
    "entries](}(X\x0e\x00\x00\x00"                                                                 \
    "profiling_nameX\x0f\x00\x00\x00nccl:all_reduceX\x11\x00\x00\x00"                              \
    "collective_seq_idK" n "X\x0d\x00\x00\x00process_groupX\x01\x00\x00\x00"                       \
    "0X\x0a\x00\x00\x00"                                                                           \
    "default_pg\x86X\x05\x00\x00\x00stateX\x07\x00\x00\x00startedueu."

static const char record_7[] = RECORD("\x07");
static const char record_9[] = RECORD("\x09");

static struct world {
    char folder[64];
    char begin[80]; /* of the names of all files */
    struct flight_watch watch;
    nsec_t now;
} w;

static const char *path_of(const char *name)
{
    static char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", w.folder, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t len)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    (void)close(fd);
}

static int begin(void **state)
{
    w = (struct world){.folder = "/tmp/test-flight-XXXXXX", .now = 100 * SEC};
    assert_non_null(mkdtemp(w.folder));
    (void)snprintf(w.begin, sizeof(w.begin), "%s/flight.", w.folder);
    flight_watch_begin(&w.watch, w.begin, w.begin);
    return 0;
}

static int end(void **state)
{
    DIR *d = opendir(w.folder);

    assert_non_null(d);
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    (void)closedir(d);
    return rmdir(w.folder);
}

static void look(bool is_still)
{
    w.now += SEC;
    flight_watch_look(&w.watch, is_still, w.now);
}

static struct flight_places said_since(nsec_t since)
{
    struct flight_places p = {.n = 0};

    flight_watch_add(&p, &w.watch, since, w.now);
    return p;
}

static void test_a_record_is_read(void **state)
{
    struct flight_places p;

    look(false);
    assert_false(said_since(0).is_known);
    assert_false(flight_watch_has_records(&w.watch));
    /* A part of it was written. */
    write_file("flight.3", record_7, 40);
    look(false);
    assert_true(said_since(0).is_known && said_since(0).n == 0);
    write_file("flight.3", record_7, sizeof(record_7) - 1);
    look(false);
    w.now += 5 * SEC;
    p = said_since(0);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].rank, 3);
    assert_int_equal(p.items[0].entered, 7);
    assert_int_equal(p.items[0].waits_in, 7);
    assert_in_range(p.items[0].age_ms, 5000, 9000);
    /* The job has moved since it was written. */
    assert_int_equal(said_since(w.now - SEC).n, 0);
    write_file("flight.3", record_9, sizeof(record_9) - 1);
    write_file("flight.12", record_7, sizeof(record_7) - 1);
    look(false);
    p = said_since(0);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.items[0].entered + p.items[1].entered, 16);
    assert_true(flight_watch_has_records(&w.watch));
}

static void test_what_is_no_record_of_it(void **state)
{
    static const char *const names[] = {"flight.", "flight.x", "flight.3x", "flight.-1",
        "flight.1000000", "other.3", "flight.3.txt"};
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        write_file(names[i], record_7, sizeof(record_7) - 1);
    look(false);
    assert_false(said_since(0).is_known);
    /* One of an earlier command, a folder, and a link. */
    write_file("flight.1", record_7, sizeof(record_7) - 1);
    assert_int_equal(utimensat(AT_FDCWD, path_of("flight.1"), old, 0), 0);
    assert_int_equal(mkfifo(path_of("flight.2"), 0600), 0);
    assert_int_equal(symlink("other.3", path_of("flight.3")), 0);
    look(false);
    assert_int_equal(said_since(0).n, 0);
}

static void test_it_is_asked_when_the_job_stands_still(void **state)
{
    char bytes[8];
    int fd;

    assert_int_equal(mkfifo(path_of("flight.3.pipe"), 0600), 0);
    fd = open(path_of("flight.3.pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    look(false);
    assert_true(said_since(0).is_known);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 0);
    look(true);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 1);
    look(true);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 0);
    w.now += 19 * SEC;
    look(true);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 1);
    /* It went on meanwhile. */
    look(false);
    look(true);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 1);
    (void)close(fd);
}

/* Nobody reads, it is full, or is no pipe. */
static void test_nothing_waits_for_it(void **state)
{
    static char much[1 << 17];
    int fd;

    assert_int_equal(mkfifo(path_of("flight.3.pipe"), 0600), 0);
    write_file("flight.4.pipe", "", 0);
    look(true);
    fd = open(path_of("flight.3.pipe"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    while (write(fd, much, sizeof(much)) > 0)
        continue;
    w.now += 30 * SEC;
    look(true);
    (void)close(fd);
    fd = open(path_of("flight.4.pipe"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, much, sizeof(much)), 0);
    (void)close(fd);
}

static void test_where_none_is_named(void **state)
{
    flight_watch_begin(&w.watch, NULL, "");
    write_file("flight.3", record_7, sizeof(record_7) - 1);
    look(true);
    assert_false(said_since(0).is_known);
    assert_false(flight_watch_has_records(&w.watch));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_is_read),
        TEST(test_what_is_no_record_of_it),
        TEST(test_it_is_asked_when_the_job_stands_still),
        TEST(test_nothing_waits_for_it),
        TEST(test_where_none_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
