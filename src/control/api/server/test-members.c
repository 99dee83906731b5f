/*
 * test-members.c - members' connections, which share many daemons of libmicrohttpd: each goes to
 * the next one in turn, and is told what is its own.
 *
 * The server and its clients are in one process, so that the test sees where a connection is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/server/server.h"
#include "api/server/server_internal.h"
#include "api/server/stream.h"
#include "base/err.h"
#include "os/clock.h"

/* Some daemons have two of them, and the others one. */
#define WATCHES (SERVER__MEMBERS_LOOPS + 5)

#define PATIENCE (20 * NSEC_PER_SEC)

/* A watch: the server's end of it, and the client's. */
struct watch {
    struct stream stream;
    struct server__connection *c; /* pins */
    bool is_open;
    int fd;
    char got[4096];
    size_t len;
};

struct fixture {
    uv_loop_t loop;
    struct server *s;
    struct server_listener *overlay;
    struct sockaddr_in at; /* of the overlay's listener */
    struct watch watches[WATCHES];
    unsigned n_closed;
};

static struct fixture *fixture;

/* ---- the server ----------------------------------------------------------------------------- */

static void on_drained(struct stream *st, nsec_t now)
{
}

static void on_closed(struct stream *st)
{
    struct watch *w = container_of(st, struct watch, stream);

    assert_true(w->is_open);
    w->is_open = false;
    fixture->n_closed++;
    stream_deinit(st);
}

static void handle_watch(void *ctx, const struct request *rq, struct response *rs)
{
    struct watch *w = &fixture->watches[strtoul(rq->params[0], NULL, 10)];

    stream_init(&w->stream, on_drained, on_closed);
    w->is_open = true;
    rs->status = 200;
    rs->stream = &w->stream;
}

static void handle_health(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 200, json_object());
}

static const struct route routes[] = {
    {"GET", "/v1/watch/{n}", API_ACCESS_OVERLAY, handle_watch, ""},
    {"GET", "/v1/health", API_ACCESS_PUBLIC | API_ACCESS_OVERLAY, handle_health, ""},
    ROUTES_END,
};

static int setup(void **state)
{
    struct endpoint here = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct fixture *f = calloc(1, sizeof(*f));
    struct server_config config = {.routes = routes};
    socklen_t len = sizeof(f->at);
    struct err e = ERR_NULL;

    assert_non_null(f);
    fixture = f;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    config.loop = &f->loop;
    assert_int_equal(server_new(&f->s, &config, &e), 0);
    assert_int_equal(server_listen_overlay(f->s, &here, NULL, NULL, &f->overlay, &e), 0);
    assert_int_equal(getsockname(f->overlay->fd, (struct sockaddr *)&f->at, &len), 0);
    for (unsigned i = 0; i < WATCHES; i++)
        f->watches[i].fd = -1;
    *state = f;
    return 0;
}

static void stop(struct fixture *f)
{
    server_stop(f->s);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    f->s = server_free(f->s);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->s)
        stop(f);
    for (unsigned i = 0; i < WATCHES; i++)
        if (f->watches[i].fd >= 0)
            (void)close(f->watches[i].fd);
    free(f);
    return 0;
}

/* ---- clients -------------------------------------------------------------------------------- */

/* Each member has its own address, since the server bounds the connections of one. */
static int ask(const struct fixture *f, unsigned member, const char *path)
{
    struct sockaddr_in from = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl((127u << 24) + 256 + member)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[160];
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);

    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    /* To this machine itself a connection is there at once. */
    (void)connect(fd, (const struct sockaddr *)&f->at, sizeof(f->at));
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    return fd;
}

static void take(struct watch *w)
{
    ssize_t n = recv(w->fd, w->got + w->len, sizeof(w->got) - 1 - w->len, 0);

    if (n > 0)
        w->len += (size_t)n;
    w->got[w->len] = '\0';
}

/* Runs the server until watch @i was sent @text. */
static void await(struct fixture *f, unsigned i, const char *text)
{
    nsec_t until = clock_now() + PATIENCE;

    for (take(&f->watches[i]); !strstr(f->watches[i].got, text); take(&f->watches[i])) {
        assert_true(clock_now() < until);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

static void open_watch(struct fixture *f, unsigned i)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/v1/watch/%u", i);
    f->watches[i].len = 0;
    f->watches[i].fd = ask(f, i, path);
    await(f, i, "\r\n\r\n");
    f->watches[i].c = f->watches[i].stream.server_ctx;
}

static void open_all(struct fixture *f)
{
    for (unsigned i = 0; i < WATCHES; i++)
        open_watch(f, i);
}

/* Pushes a line that names it, and awaits it; nothing else may have come. */
static void say(struct fixture *f, unsigned i, const char *word)
{
    char text[32];
    char chunk[48];
    size_t before = f->watches[i].len;
    struct line *l;

    (void)snprintf(text, sizeof(text), "%s-%u", word, i);
    (void)snprintf(chunk, sizeof(chunk), "%zx\r\n%s\n\r\n", strlen(text) + 1, text);
    l = line_new(text, strlen(text));
    assert_true(stream_push(&f->watches[i].stream, l, clock_now()));
    (void)line_unref(l);
    await(f, i, chunk);
    assert_string_equal(f->watches[i].got + before, chunk);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_in_turn(void **state)
{
    struct fixture *f = *state;
    unsigned n[SERVER__MEMBERS_LOOPS] = {0};

    open_all(f);
    for (unsigned i = 0; i < WATCHES; i++) {
        ptrdiff_t at = f->watches[i].c->loop - f->s->members;

        assert_in_range(at, 0, SERVER__MEMBERS_LOOPS - 1);
        n[at]++;
    }
    for (unsigned i = 0; i < SERVER__MEMBERS_LOOPS; i++)
        assert_in_range(n[i], 1, 2);
}

static void test_each_hears_its_own(void **state)
{
    struct fixture *f = *state;

    open_all(f);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < WATCHES; i++)
            say(f, i, round == 0 ? "first" : "second");
    /* And those that were told together, in one turn of the loop. */
    for (unsigned i = 0; i < WATCHES; i++) {
        struct line *l = line_new("all", 3);

        assert_true(stream_push(&f->watches[i].stream, l, clock_now()));
        (void)line_unref(l);
    }
    for (unsigned i = 0; i < WATCHES; i++)
        await(f, i, "4\r\nall\n\r\n");
}

/* The last one shares the daemon of the one that goes. */
static void test_one_goes(void **state)
{
    const unsigned last = SERVER__MEMBERS_LOOPS;
    struct fixture *f = *state;
    nsec_t until = clock_now() + PATIENCE;

    open_all(f);
    assert_ptr_equal(f->watches[0].c->loop, f->watches[last].c->loop);
    (void)close(f->watches[0].fd);
    f->watches[0].fd = -1;
    stream_check(&f->watches[0].stream);
    while (f->watches[0].is_open) {
        assert_true(clock_now() < until);
        stream_check(&f->watches[0].stream);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(f->n_closed, 1);
    assert_int_equal(server_counts(f->s).cut, 0);
    for (unsigned i = 1; i < WATCHES; i++)
        say(f, i, "still");
    open_watch(f, 0);
    say(f, 0, "again");
}

/* Also of a daemon in which all others wait a request is answered, and the connection ends. */
static void test_beside_watches(void **state)
{
    struct fixture *f = *state;

    open_all(f);
    for (unsigned i = 0; i < SERVER__MEMBERS_LOOPS; i++) {
        struct watch one = {.fd = ask(f, WATCHES, "/v1/health")};
        nsec_t until = clock_now() + PATIENCE;

        for (take(&one); !strstr(one.got, "\r\n\r\n{}"); take(&one)) {
            assert_true(clock_now() < until);
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        }
        (void)close(one.fd);
    }
    assert_int_equal(f->n_closed, 0);
}

/* All watches end with the server, whichever daemon has them, and each owner hears of it once. */
static void test_the_server_stops(void **state)
{
    struct fixture *f = *state;

    open_all(f);
    stop(f);
    assert_int_equal(f->n_closed, WATCHES);
    for (unsigned i = 0; i < WATCHES; i++)
        assert_false(f->watches[i].is_open);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_hears_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_beside_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_server_stops, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
