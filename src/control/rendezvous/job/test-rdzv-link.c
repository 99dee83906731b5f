/*
 * test-rdzv-link.c - messages through the pipe to the hub, and changes that wait for its disk.
 *
 * The test is the hub: it has the other end of a socket pair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "rendezvous/job/rdzv_link.h"

/* What the process end was told. */
struct heard {
    enum rdzv_wire_type types[32];
    int fds[32];
    size_t n;
};

/* Both ends. */
struct pipe {
    struct rdzv_link link;
    struct heard heard;
    int hub; /* owns */
};

static void on_message(void *ctx, const struct rdzv_wire *m, int fd)
{
    struct heard *h = ctx;

    assert_true(h->n < sizeof(h->types) / sizeof(*h->types));
    h->types[h->n] = m->type;
    h->fds[h->n++] = fd;
}

static int set_up(void **state)
{
    struct pipe *p = calloc(1, sizeof(*p));
    int fds[2];

    assert_non_null(p);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(rdzv_link_init(&p->link, fds[0]), 0);
    p->link.on_message = on_message;
    p->link.ctx = &p->heard;
    p->hub = fds[1];
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct pipe *p = *state;

    (void)close(p->link.fd);
    if (p->hub >= 0)
        (void)close(p->hub);
    rdzv_link_deinit(&p->link);
    free(p);
    return 0;
}

/* The hub sends @len bytes, with the descriptor @fd; -1: with none. */
static void hub_send(struct pipe *p, const void *bytes, size_t len, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.space = ""};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        h.msg_control = control.space;
        h.msg_controllen = sizeof(control.space);
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    assert_int_equal(sendmsg(p->hub, &h, 0), len);
}

static void hub_say(struct pipe *p, const struct rdzv_wire *m, int fd)
{
    struct str out = STR_NULL;

    rdzv_wire_encode(&out, m);
    hub_send(p, out.text, out.len, fd);
    str_deinit(&out);
}

/* The messages that the hub has got, at most @max of them, with their data in @buf. */
static size_t hub_hear(struct pipe *p, struct rdzv_wire *ret, size_t max, uint8_t *buf, size_t cap)
{
    ssize_t len = recv(p->hub, buf, cap, 0);
    size_t off = 0;
    size_t n = 0;

    while (len > 0 && off < (size_t)len && n < max) {
        size_t used = 0;

        assert_int_equal(rdzv_wire_decode(&ret[n++], buf + off, (size_t)len - off, &used), 0);
        off += used;
    }
    return n;
}

static void test_messages_that_come_in_part(void **state)
{
    struct pipe *p = *state;
    const struct rdzv_wire m = {.type = RDZV_WIRE_CLEAR, .job = 7, .run = 2};
    struct str out = STR_NULL;

    rdzv_wire_encode(&out, &m);
    rdzv_wire_encode(&out, &m);
    for (size_t i = 0; i < out.len; i++) {
        hub_send(p, out.text + i, 1, -1);
        rdzv_link_read(&p->link);
        assert_int_equal(p->heard.n, (i + 1) / (out.len / 2));
    }
    assert_false(p->link.failed);
    assert_int_equal(p->link.in_len, 0);
    str_deinit(&out);
}

static void test_descriptors(void **state)
{
    struct pipe *p = *state;
    int own = dup(STDIN_FILENO);

    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_LISTENER, .job = 1}, own);
    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_FORGET, .job = 1}, -1);
    rdzv_link_read(&p->link);
    assert_int_equal(p->heard.n, 2);
    assert_true(p->heard.fds[0] >= 0);
    assert_int_equal(p->heard.fds[1], -1);
    assert_int_equal(p->link.n_fds, 0);
    (void)close(p->heard.fds[0]);
    (void)close(own);

    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_LISTENER, .job = 1}, -1);
    rdzv_link_read(&p->link);
    assert_int_equal(p->heard.n, 2);
    assert_true(p->link.failed);
}

/* What only a process may say ends the link, and so does what is no message, or the hub's end. */
static void test_failures(void **state)
{
    struct pipe *p = *state;

    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_END}, -1);
    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_SYNC, .seq = 1}, -1);
    hub_say(p, &(struct rdzv_wire){.type = RDZV_WIRE_END}, -1);
    rdzv_link_read(&p->link);
    assert_int_equal(p->heard.n, 1);
    assert_true(p->link.failed);

    p->link.failed = false;
    p->link.in_len = 0;
    hub_send(p, "\xff\xff\xff\xff", 4, -1);
    rdzv_link_read(&p->link);
    assert_true(p->link.failed);

    p->link.failed = false;
    p->link.in_len = 0;
    (void)close(p->hub);
    p->hub = -1;
    rdzv_link_read(&p->link);
    assert_true(p->link.failed);
    assert_int_equal(p->heard.n, 1);
}

/* A blob of several pieces: the first piece is sent last, and the pieces are the blob. */
static void test_pieces(void **state)
{
    static uint8_t blob[2 * RDZV_CHUNK + 10];
    static uint8_t buf[1 << 19];
    static uint8_t got[sizeof(blob)];
    struct pipe *p = *state;
    struct rdzv_wire m[4];
    size_t n;

    for (size_t i = 0; i < sizeof(blob); i++)
        blob[i] = (uint8_t)(i * 31 + i / 256);
    rdzv_save_blob(&p->link, 7, 2, RDZV_KEY_ENTRY, "name", 4, blob, sizeof(blob));
    rdzv_save_drop_blob(&p->link, 7, 2, RDZV_KEY_ENTRY, "name", 4);
    rdzv_link_flush(&p->link);
    n = hub_hear(p, m, 4, buf, sizeof(buf));
    assert_int_equal(n, 4);
    assert_int_equal(m[0].piece, 1);
    assert_int_equal(m[1].piece, 2);
    assert_int_equal(m[2].piece, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(m[i].type, RDZV_WIRE_PUT);
        assert_int_equal(m[i].n_pieces, 3);
        memcpy(got + (size_t)m[i].piece * RDZV_CHUNK, m[i].data, m[i].len);
    }
    assert_memory_equal(got, blob, sizeof(blob));
    assert_int_equal(m[3].type, RDZV_WIRE_DROP);
    assert_memory_equal(&m[3].hash, &m[0].hash, sizeof(m[3].hash));
}

static struct rdzv_save_wait *again; /* waits once more when it is done */
static struct rdzv_link *again_on;
static unsigned n_done;
static int last_error;

static void on_done(struct rdzv_save_wait *w, int error)
{
    n_done++;
    last_error = error;
    if (w == again) {
        again = NULL;
        rdzv_save_wait(again_on, w);
    }
}

/* One SYNC a flush, however many wait; nobody is told by an earlier one, or after forgetting. */
static void test_waiting_for_the_disk(void **state)
{
    struct pipe *p = *state;
    struct rdzv_save_wait w[4];
    struct rdzv_wire m[4];
    uint8_t buf[256];

    for (size_t i = 0; i < 4; i++) {
        w[i] = (struct rdzv_save_wait){.done = on_done};
        list_init(&w[i].link);
    }
    n_done = 0;
    rdzv_link_flush(&p->link);
    assert_int_equal(hub_hear(p, m, 4, buf, sizeof(buf)), 0);

    rdzv_save_wait(&p->link, &w[0]);
    rdzv_save_wait(&p->link, &w[1]);
    rdzv_save_wait(&p->link, &w[2]);
    rdzv_link_flush(&p->link);
    rdzv_save_wait(&p->link, &w[3]);
    assert_int_equal(hub_hear(p, m, 4, buf, sizeof(buf)), 1);
    assert_int_equal(m[0].type, RDZV_WIRE_SYNC);
    rdzv_link_flush(&p->link);
    assert_int_equal(hub_hear(p, m + 1, 3, buf, sizeof(buf)), 1);
    assert_true(m[1].seq > m[0].seq);

    list_remove(&w[1].link);
    again = &w[0];
    again_on = &p->link;
    rdzv_save_on_saved(&p->link, m[0].seq, 0);
    assert_int_equal(n_done, 2);
    assert_int_equal(last_error, 0);
    rdzv_save_on_saved(&p->link, m[1].seq, -EIO);
    assert_int_equal(n_done, 3);
    assert_int_equal(last_error, -EIO);
    /* The one that waits anew is asked for with the next flush. */
    rdzv_link_flush(&p->link);
    assert_int_equal(hub_hear(p, m, 4, buf, sizeof(buf)), 1);
    rdzv_save_on_saved(&p->link, m[0].seq, 0);
    assert_int_equal(n_done, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_that_come_in_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_descriptors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_for_the_disk, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
