/* test-job.c - the blobs of one job and the changes that lead to them, its ports, and how it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "hub/jobs/change_queue.h"
#include "hub/jobs/job.h"
#include "hub/jobs/jobs.h"
#include "net/address/sockaddr.h"
#include "rendezvous/shared/rdzv_wire.h"

#define NOW NSEC_PER_SEC

static struct change_queue queue;
static struct blob_totals totals;
static struct job_blobs blobs;
static struct blob_upload upload;
static uint8_t bytes[RDZV_CHUNK];

static int enter(void **state)
{
    change_queue_init(&queue, 1);
    totals = (struct blob_totals){.n_entries = 0};
    upload = (struct blob_upload){.to = NULL};
    job_blobs_init(&blobs, "net", "job", &queue, &totals, 2);
    blob_index_set_run(&blobs.index, 3, false);
    memset(bytes, 'x', sizeof(bytes));
    return 0;
}

static int leave(void **state)
{
    job_blobs_deinit(&blobs);
    assert_int_equal(totals.n_entries, 0);
    assert_int_equal(totals.n_garbage, 0);
    assert_int_equal(totals.n_bytes, 0);
    change_queue_deinit(&queue);
    return 0;
}

static struct rdzv_hash hash_of(char name)
{
    return rdzv_hash_of(&name, 1);
}

/* The name of one letter whose hash that is. */
static char name_of(const char *hash)
{
    char key[RDZV_KEY_MAX];

    for (char name = 'a'; name <= 'z'; name++) {
        struct rdzv_hash h = hash_of(name);

        (void)rdzv_key_of_blob(key, RDZV_KEY_ENTRY, "net", "job", &h);
        if (strncmp(strrchr(key, '/') + 1, hash, 64) == 0)
            return name;
    }
    return '?';
}

/* What waits to be stored: "t/a=3.-.1" is a first piece, "t/a/a001=" another one, and "-t/a" a
 * deletion. It is forgotten then. */
static void expect_changes(const char *expected)
{
    static const char prefix[] = "rdzv/net/job/";
    const struct change *ch;
    struct str s = STR_NULL;
    char *text;

    str_add(&s, " ");
    list_foreach(ch, &queue.waiting, link) {
        const char *rest = ch->key + strlen(prefix);

        assert_memory_equal(ch->key, prefix, strlen(prefix));
        str_addf(&s, "%s%.2s%c%s", ch->text ? "" : "-", rest, name_of(rest + 2), rest + 66);
        if (ch->text)
            str_addf(&s, "=%.*s", rest[66] ? 0 : 5, ch->text + 1);
        str_add(&s, " ");
    }
    text = str_take(&s, NULL);
    assert_string_equal(text, expected);
    free(text);
    change_queue_deinit(&queue);
    change_queue_init(&queue, 1);
}

static void expect_totals(size_t n_entries, size_t n_garbage, size_t n_bytes)
{
    assert_int_equal(totals.n_entries, n_entries);
    assert_int_equal(totals.n_garbage, n_garbage);
    assert_int_equal(blobs.index.n_garbage, n_garbage);
    assert_int_equal(totals.n_bytes, n_bytes);
}

static struct rdzv_wire piece_of(char name, unsigned n_pieces, unsigned piece, size_t len)
{
    return (struct rdzv_wire){.type = RDZV_WIRE_PUT,
        .kind = RDZV_KEY_ENTRY,
        .hash = hash_of(name),
        .n_pieces = (uint16_t)n_pieces,
        .piece = (uint16_t)piece,
        .data = bytes,
        .len = len};
}

static bool put(char name, unsigned n_pieces, unsigned piece, size_t len)
{
    struct rdzv_wire m = piece_of(name, n_pieces, piece, len);

    return job_blobs_put(&blobs, &upload, &m, NOW);
}

static void drop(char name)
{
    struct rdzv_hash h = hash_of(name);

    job_blobs_drop(&blobs, RDZV_KEY_ENTRY, &h, NOW);
}

/* ---- blobs ----------------------------------------------------------------------------------- */

static void test_blobs_of_one_piece(void **state)
{
    struct rdzv_wire m = piece_of('a', 1, 0, 7);

    assert_true(put('a', 1, 0, 5));
    expect_changes(" t/a=3.-.1 ");
    expect_totals(1, 0, 5);
    assert_true(put('a', 1, 0, 3));
    expect_totals(1, 0, 3);
    assert_true(put('b', 1, 0, 10));
    expect_changes(" t/a=3.-.1 t/b=3.-.1 ");
    expect_totals(2, 0, 13);
    /* Of another kind it is another one. */
    m.kind = RDZV_KEY_NODE;
    assert_true(job_blobs_put(&blobs, &upload, &m, NOW));
    expect_changes(" e/a=3.-.1 ");
    expect_totals(3, 0, 20);
    drop('a');
    drop('a');
    drop('c');
    expect_changes(" -t/a ");
    expect_totals(2, 0, 17);
}

static void test_blobs_of_several_pieces(void **state)
{
    assert_true(put('a', 3, 1, RDZV_CHUNK));
    assert_ptr_equal(upload.to, &blobs);
    assert_true(put('a', 3, 2, 100));
    expect_totals(0, 0, 0);
    assert_true(put('a', 3, 0, RDZV_CHUNK));
    assert_null(upload.to);
    expect_changes(" t/a/a001= t/a/a002= t/a=3.a.3 ");
    expect_totals(1, 0, 2 * RDZV_CHUNK + 100);
    /* Over it another one, in the other slot; and over that one, of one piece. */
    assert_true(put('a', 2, 1, 1));
    assert_true(put('a', 2, 0, RDZV_CHUNK));
    expect_changes(" t/a/b001= t/a=3.b.2 -t/a/a001 -t/a/a002 ");
    expect_totals(1, 0, RDZV_CHUNK + 1);
    assert_true(put('a', 2, 1, 1));
    assert_true(put('a', 2, 0, RDZV_CHUNK));
    expect_changes(" t/a/a001= t/a=3.a.2 -t/a/b001 ");
    drop('a');
    expect_changes(" -t/a -t/a/a001 ");
    expect_totals(0, 0, 0);
}

static void begin_upload(void)
{
    upload.to = NULL;
    assert_true(put('a', 4, 1, RDZV_CHUNK));
    assert_true(put('a', 4, 2, RDZV_CHUNK));
}

/* Each piece has to be the next one of the same blob, and as long as it may be. */
static void test_pieces_that_do_not_follow(void **state)
{
    struct job_blobs other;
    struct rdzv_wire m;

    assert_false(put('a', 4, 2, RDZV_CHUNK));
    assert_false(put('a', 4, 0, RDZV_CHUNK));
    assert_false(put('a', 4, 1, RDZV_CHUNK - 1));
    assert_false(put('a', 2, 1, 0));
    begin_upload();
    assert_false(put('a', 4, 2, RDZV_CHUNK));
    assert_false(put('a', 4, 0, RDZV_CHUNK));
    assert_false(put('a', 5, 3, RDZV_CHUNK));
    assert_false(put('b', 4, 3, RDZV_CHUNK));
    assert_false(put('a', 4, 3, 0));
    assert_false(put('b', 1, 0, 5));
    m = piece_of('a', 4, 3, 10);
    m.kind = RDZV_KEY_NODE;
    assert_false(job_blobs_put(&blobs, &upload, &m, NOW));
    job_blobs_init(&other, "net", "other", &queue, &totals, 3);
    m.kind = RDZV_KEY_ENTRY;
    assert_false(job_blobs_put(&other, &upload, &m, NOW));
    job_blobs_deinit(&other);
    assert_true(job_blobs_put(&blobs, &upload, &m, NOW));
    assert_false(put('a', 4, 0, RDZV_CHUNK - 1));
    assert_true(put('a', 4, 0, RDZV_CHUNK));
    expect_totals(1, 0, 3 * RDZV_CHUNK + 10);
}

static void test_half_a_blob(void **state)
{
    begin_upload();
    expect_changes(" t/a/a001= t/a/a002= ");
    job_blobs_abort(&upload, NOW);
    assert_null(upload.to);
    expect_changes(" -t/a/a001 -t/a/a002 ");
    job_blobs_abort(&upload, NOW);
    expect_changes(" ");
}

static void test_limits(void **state)
{
    assert_true(put('a', 1, 0, 5));
    totals.n_entries = JOB_BLOBS_MAX - 1;
    assert_true(put('b', 1, 0, 5));
    assert_int_equal(totals.n_entries, JOB_BLOBS_MAX);
    assert_false(put('c', 1, 0, 5));
    assert_true(put('b', 1, 0, 5));
    totals.n_entries = 2;
    totals.n_bytes = JOB_BLOBS_BYTES_MAX;
    assert_true(put('b', 1, 0, 5));
    assert_false(put('b', 1, 0, 6));
    assert_true(put('b', 1, 0, 4));
    assert_true(put('c', 1, 0, 1));
    assert_false(put('d', 1, 0, 1));
    totals.n_bytes = 10;
    /* What is garbage does not count. */
    blob_index_set_run(&blobs.index, 4, false);
    totals.n_bytes = JOB_BLOBS_BYTES_MAX - 5;
    assert_false(put('a', 1, 0, 6));
    assert_true(put('a', 1, 0, 5));
    totals.n_bytes = 5;
}

/* ---- garbage --------------------------------------------------------------------------------- */

static void test_what_is_current(void **state)
{
    struct blob_index index = {.run = 0};
    struct blob_entry entry = {.run = 0};

    index.takes_unmarked = true;
    assert_false(blob_index_is_current(&index, &entry));
    index.run = 3;
    assert_true(blob_index_is_current(&index, &entry));
    index.takes_unmarked = false;
    assert_false(blob_index_is_current(&index, &entry));
    entry.run = 3;
    assert_true(blob_index_is_current(&index, &entry));
    entry.run = 2;
    index.takes_unmarked = true;
    assert_false(blob_index_is_current(&index, &entry));
}

static void test_garbage_goes(void **state)
{
    assert_true(put('a', 1, 0, 5));
    assert_true(put('b', 2, 1, 5));
    assert_true(put('b', 2, 0, RDZV_CHUNK));
    expect_changes(" t/a=3.-.1 t/b/a001= t/b=3.a.2 ");
    job_blobs_sweep(&blobs, NOW);
    expect_changes(" ");
    blobs.index.sweep_cursor = 7;
    blob_index_set_run(&blobs.index, 4, false);
    assert_int_equal(blobs.index.sweep_cursor, 0);
    expect_totals(2, 2, 0);
    /* One that is written again is none, and keeps no piece of the former. */
    assert_true(put('b', 1, 0, 9));
    expect_changes(" t/b=4.-.1 -t/b/a001 ");
    expect_totals(2, 1, 9);
    job_blobs_sweep(&blobs, NOW);
    expect_changes(" -t/a ");
    expect_totals(1, 0, 9);
    blob_index_set_run(&blobs.index, 0, true);
    expect_totals(1, 1, 0);
}

/* Only while few changes wait. */
static void test_garbage_has_time(void **state)
{
    char key[16];

    assert_true(put('a', 1, 0, 5));
    blob_index_set_run(&blobs.index, 4, false);
    for (unsigned i = 0; i < 256 - 1; i++) {
        (void)snprintf(key, sizeof(key), "%u", i);
        assert_int_equal(change_queue_put(&queue, key, NULL, NOW), 0);
    }
    assert_int_equal(queue.by_key.n, 256);
    assert_false(job_blobs_may_delete(&queue));
    job_blobs_sweep(&blobs, NOW);
    expect_totals(1, 1, 0);
    change_queue_forget(&queue, "7");
    assert_true(job_blobs_may_delete(&queue));
    job_blobs_sweep(&blobs, NOW);
    expect_totals(0, 0, 0);
}

/* ---- loading --------------------------------------------------------------------------------- */

static int load(char name, char slot, unsigned piece, const char *text, struct err *e)
{
    struct rdzv_key k = {
        .kind = RDZV_KEY_ENTRY, .hash = hash_of(name), .slot = slot, .piece = piece};
    char first[RDZV_KEY_MAX];
    char key[RDZV_KEY_MAX];

    (void)rdzv_key_of_blob(first, RDZV_KEY_ENTRY, "net", "job", &k.hash);
    if (piece > 0)
        (void)rdzv_key_of_piece(key, first, slot, piece);
    return job_blobs_load(&blobs, &k, piece > 0 ? key : first, text, NOW, e);
}

static void test_loading(void **state)
{
    struct err e = ERR_NULL;

    assert_int_equal(load('a', 0, 0, "\"3.-.1.AAAAAAAA\"", &e), 0);
    expect_totals(1, 0, 6);
    assert_int_equal(load('b', 0, 0, "\"3.a.3.AAAA\"", &e), 0);
    expect_totals(2, 0, 6 + 3 + 2 * RDZV_CHUNK);
    assert_int_equal(load('b', 'a', 1, "\"AAAA\"", &e), 0);
    assert_int_equal(load('b', 'a', 2, "\"AAAA\"", &e), 0);
    expect_changes(" ");
    /* What no first piece names is deleted. */
    assert_int_equal(load('b', 'a', 3, "\"AAAA\"", &e), 0);
    assert_int_equal(load('b', 'b', 1, "\"AAAA\"", &e), 0);
    assert_int_equal(load('z', 'a', 1, "\"AAAA\"", &e), 0);
    expect_changes(" -t/b/a003 -t/b/b001 -t/z/a001 ");
    assert_int_equal(load('c', 0, 0, "\"3.?.1.AAAA\"", &e), -EINVAL);
    assert_true(e.text[0] != '\0');
    expect_totals(2, 0, 6 + 3 + 2 * RDZV_CHUNK);
    drop('b');
    expect_changes(" -t/b -t/b/a001 -t/b/a002 ");
    expect_totals(1, 0, 6);
}

/* As hubs wrote them before there were runs: the pieces say by and by how many there are. */
static void test_loading_of_old_ones(void **state)
{
    struct err e = ERR_NULL;

    blob_index_set_run(&blobs.index, 3, true);
    assert_int_equal(load('a', 0, 0, "\"AAAA\"", &e), 0);
    expect_totals(1, 0, 3);
    assert_int_equal(load('a', '0', 1, "\"AAAA\"", &e), 0);
    assert_int_equal(load('a', '0', 2, "\"AAAA\"", &e), 0);
    expect_changes(" ");
    assert_int_equal(load('a', '0', 4, "\"AAAA\"", &e), 0);
    expect_changes(" -t/a/04 ");
    drop('a');
    expect_changes(" -t/a -t/a/01 -t/a/02 ");
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool is_listening(int fd)
{
    struct endpoint at;
    union sockaddr_inet sa;
    socklen_t len;
    int client;
    bool is_it;

    assert_int_equal(sockaddr_local(fd, &at), 0);
    len = sockaddr_from_endpoint(&sa, &at);
    client = socket(sa.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    is_it = connect(client, &sa.any, len) == 0;
    (void)close(client);
    return is_it;
}

/* On the overlay's interface, and for the machine's own programs on the loopback. */
static void test_ports(void **state)
{
    const struct endpoint at[2] = {{.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})},
        {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 2})}};
    struct job_ports ports;
    struct err e = ERR_NULL;
    int before;

    job_ports_init(&ports);
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        assert_int_equal(ports.fds[i], -1);
    assert_int_equal(job_ports_open(&ports, "lo", false, at, 2, &e), 0);
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        assert_int_equal(ports.fds[i] >= 0, i < 2);
    assert_true(is_listening(ports.fds[0]));
    assert_true(is_listening(ports.fds[1]));
    before = ports.fds[1];
    assert_int_equal(job_ports_open(&ports, "lo", false, at, 2, &e), 0);
    assert_int_equal(ports.fds[1], before);
    job_ports_close(&ports);
    job_ports_close(&ports);
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        assert_int_equal(ports.fds[i], -1);
    /* Those of which one cannot be opened: the others are. */
    assert_true(job_ports_open(&ports, "no-such-one", true, at, 2, &e) < 0);
    assert_int_equal(ports.n_failures, 1);
    for (unsigned i = 0; i < JOB_PORTS_MAX; i++)
        assert_int_equal(ports.fds[i] >= 0, i == JOB_PORTS_OVERLAY || i == JOB_PORTS_OVERLAY + 1);
    assert_int_equal(job_ports_open(&ports, "lo", true, at, 2, &e), 0);
    assert_int_equal(ports.n_failures, 0);
    job_ports_close(&ports);
}

/* ---- how a job is ---------------------------------------------------------------------------- */

static void test_how_a_job_is(void **state)
{
    static struct job job;
    struct ip_addr a = ip_addr_v4((const uint8_t[4]){10, 0, 0, 1});
    struct ip_addr b = ip_addr_v4((const uint8_t[4]){10, 0, 0, 2});

    assert_true(job_exists(&job));
    job.is_unsaved = true;
    assert_false(job_exists(&job));
    job.is_unsaved = false;
    job.is_forgotten = true;
    assert_false(job_exists(&job));
    (void)snprintf(job.name, sizeof(job.name), "default");
    assert_true(job_is_default(&job));
    (void)snprintf(job.name, sizeof(job.name), "train");
    assert_false(job_is_default(&job));
    assert_false(job_is_busy(&job, NULL));
    job.facts.n_members = 1;
    job.facts.member = a;
    assert_true(job_is_busy(&job, NULL));
    assert_false(job_is_busy(&job, &a));
    assert_true(job_is_busy(&job, &b));
    job.facts.n_members = 2;
    assert_true(job_is_busy(&job, &a));
    /* It is over when somebody says so, or when it is quiet for long enough. */
    job.heard_at = NOW;
    assert_false(job_is_over(&job, NOW + JOBS_QUIET + 1));
    job.facts.n_members = 0;
    assert_false(job_is_over(&job, NOW + JOBS_QUIET));
    assert_true(job_is_over(&job, NOW + JOBS_QUIET + 1));
    job.record.ended = true;
    assert_true(job_is_over(&job, NOW));
    job.record.run = 7;
    assert_true(job_is_run(&job, "train.7"));
    assert_false(job_is_run(&job, "train.8"));
    job_blobs_init(&job.blobs, "net", job.name, &queue, &totals, 1);
    job_set_run(&job, 8);
    assert_int_equal(job.record.run, 8);
    assert_int_equal(job.blobs.index.run, 8);
    assert_false(job.blobs.index.takes_unmarked);
    assert_false(job.record.ended);
    assert_true(job.record.has_heads);
    assert_false(job.is_forgotten);
    job_blobs_deinit(&job.blobs);
    job.facts = (struct job_facts){.n_connections = 1, .n_members = 1, .n_keys = 1, .n_bytes = 1};
    job.facts.n_refused = 9;
    job_forget_facts(&job);
    assert_int_equal(job.facts.n_connections, 0);
    assert_int_equal(job.facts.n_members, 0);
    assert_int_equal(job.facts.n_keys, 0);
    assert_int_equal(job.facts.n_bytes, 0);
    assert_int_equal(job.facts.n_refused, 9);
}

static void test_words(void **state)
{
    const struct rdzv_wire m = {.data = (const uint8_t *)" ~\x1f\x7f\xff"
                                                         "abc",
        .len = 8};
    char buf[10] = "";

    job_read_words(buf, 10, &m);
    assert_string_equal(buf, " ~???abc");
    job_read_words(buf, 9, &m);
    assert_string_equal(buf, " ~???abc");
    job_read_words(buf, 8, &m);
    assert_string_equal(buf, " ~???ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blobs_of_one_piece, enter, leave),
        cmocka_unit_test_setup_teardown(test_blobs_of_several_pieces, enter, leave),
        cmocka_unit_test_setup_teardown(test_pieces_that_do_not_follow, enter, leave),
        cmocka_unit_test_setup_teardown(test_half_a_blob, enter, leave),
        cmocka_unit_test_setup_teardown(test_limits, enter, leave),
        cmocka_unit_test(test_what_is_current),
        cmocka_unit_test_setup_teardown(test_garbage_goes, enter, leave),
        cmocka_unit_test_setup_teardown(test_garbage_has_time, enter, leave),
        cmocka_unit_test_setup_teardown(test_loading, enter, leave),
        cmocka_unit_test_setup_teardown(test_loading_of_old_ones, enter, leave),
        cmocka_unit_test(test_ports),
        cmocka_unit_test_setup_teardown(test_how_a_job_is, enter, leave),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
