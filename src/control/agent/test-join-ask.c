/* test-join-ask.c - when a hub is asked again to take a machine in, and when it is not. */
#include "agent/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/client/client.h"
#include "base/err.h"
#include "os/clock.h"
#include "test/support/canned_server.h"
#include "test/support/sample_daemon.h"

/* Enough for any test that ends by an answer. */
#define LONG (60 * NSEC_PER_SEC)

/* ---- a way to the daemon that is broken for a while ----------------------------------------- */

/* A thread that resets so many connections, and passes one on to the daemon after that. */
struct gate {
    unsigned n_resets;
    unsigned n_accepted; /* the thread's until it is joined */
    int fd;              /* listens */
    char server[32];     /* HOST:PORT */
    pthread_t thread;
};

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
}

static void reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    (void)close(fd);
}

static void pass_on(int client)
{
    struct sockaddr_in at = loopback(sample_daemon.port);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd p[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    char buf[4096];
    ssize_t n = connect(server, (struct sockaddr *)&at, sizeof(at)) == 0 ? 1 : 0;

    while (n > 0 && poll(p, 2, -1) > 0) {
        unsigned from = p[0].revents ? 0 : 1;

        n = read(p[from].fd, buf, sizeof(buf));
        if (n > 0)
            n = write(p[1 - from].fd, buf, (size_t)n);
    }
    (void)close(server);
    (void)close(client);
}

static void *guard(void *arg)
{
    struct gate *g = arg;

    for (; g->n_accepted <= g->n_resets; g->n_accepted++) {
        int fd = accept(g->fd, NULL, NULL);

        if (fd < 0)
            break;
        if (g->n_accepted < g->n_resets)
            reset(fd);
        else
            pass_on(fd);
    }
    return NULL;
}

static void gate_start(struct gate *g, unsigned n_resets)
{
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof(at);

    *g = (struct gate){.n_resets = n_resets, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(g->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(g->fd, 8), 0);
    assert_int_equal(getsockname(g->fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(g->server, sizeof(g->server), "127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&g->thread, NULL, guard, g), 0);
}

/* Returns how many connections came. */
static unsigned gate_stop(struct gate *g)
{
    (void)shutdown(g->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(g->thread, NULL), 0);
    (void)close(g->fd);
    return g->n_accepted;
}

/* ---- asking --------------------------------------------------------------------------------- */

struct asking {
    struct token token;
    struct join_options options;
    struct client_answer answer;
    struct err e;
    unsigned n_waits;                /* how often on_wait() was called */
    unsigned n_passed_over;          /* how often on_proxy_passed_over() was */
    const struct x25519_public *hub; /* who has answered */
};

static void on_wait(void *ctx, unsigned for_s, const struct err *e)
{
    struct asking *a = ctx;

    a->n_waits++;
    assert_in_range(for_s, 1, 60);
    assert_true(err_text(e)[0] != '\0');
}

static void on_proxy_passed_over(void *ctx, const struct err *e)
{
    struct asking *a = ctx;

    a->n_passed_over++;
    assert_non_null(strstr(err_text(e), "through the proxy 127.0.0.1:1: "));
}

static void asking_init(struct asking *a, const char *api, const char *name)
{
    *a = (struct asking){.token = {.n_api = 1, .pin = sample_daemon.pin}};
    (void)snprintf(a->token.api[0], sizeof(a->token.api[0]), "%s", api);
    a->options = (struct join_options){.token = &a->token,
        .name = name,
        .on_wait = on_wait,
        .on_proxy_passed_over = on_proxy_passed_over,
        .ctx = a};
}

static int ask(struct asking *a, nsec_t patience)
{
    const struct rng rng = rng_kernel();
    struct x25519_secret secret;
    struct x25519_public public;

    x25519_secret_make(&secret, &rng);
    assert_true(x25519_derive_public(&secret, &a->token.hub_key));
    for (unsigned i = 0; i < a->token.n_others; i++) {
        x25519_secret_make(&secret, &rng);
        assert_true(x25519_derive_public(&secret, &a->token.others[i].key));
    }
    x25519_secret_make(&secret, &rng);
    assert_true(x25519_derive_public(&secret, &public));
    a->hub = NULL;
    return join_ask(&a->options, &secret, &public, patience, &a->answer, &a->hub, &a->e);
}

static json_int_t times_asked(const struct asking *a)
{
    return json_integer_value(json_object_get(a->answer.body, "asked"));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_connections_that_are_reset(void **state)
{
    struct asking a;
    struct gate g;

    gate_start(&g, 2);
    asking_init(&a, g.server, "a");
    assert_int_equal(ask(&a, LONG), 0);
    assert_int_equal(gate_stop(&g), 3);
    assert_int_equal(a.n_waits, 1);
    assert_int_equal(times_asked(&a), 1);
    client_answer_deinit(&a.answer);
}

/* A hub that says itself that it cannot now is asked again. */
static void test_a_busy_hub(void **state)
{
    struct asking a;

    asking_init(&a, sample_daemon.https, "busy");
    assert_int_equal(ask(&a, LONG), 0);
    assert_int_equal(a.n_waits, 1);
    assert_int_equal(times_asked(&a), 3);
    client_answer_deinit(&a.answer);
}

static void test_what_is_refused_is_not_asked_again(void **state)
{
    struct asking a;

    asking_init(&a, sample_daemon.https, "strange");
    assert_int_equal(ask(&a, LONG), CLIENT_E_REFUSED);
    assert_int_equal(a.n_waits, 0);
    assert_string_equal(a.e.text, "the hub refuses: asked 1 times");
    client_answer_deinit(&a.answer);
}

/* Nor is another name than the host's asked for, since it is not the name that is refused. */
static void test_what_is_refused_to_a_host(void **state)
{
    struct asking a;

    if (unshare(CLONE_NEWUTS) != 0)
        skip();
    assert_int_equal(sethostname("strange", 7), 0);
    asking_init(&a, sample_daemon.https, NULL);
    assert_int_equal(ask(&a, LONG), CLIENT_E_REFUSED);
    assert_string_equal(a.e.text, "the hub refuses: asked 1 times");
    client_answer_deinit(&a.answer);
}

static void test_another_key_is_not_asked_again(void **state)
{
    struct asking a;

    asking_init(&a, sample_daemon.https, "a");
    a.token.pin.b[0] ^= 1;
    assert_int_equal(ask(&a, LONG), CLIENT_E_UNTRUSTED);
    assert_int_equal(a.n_waits, 0);
}

/* Of two addresses, one of which leads to another machine, the other one may lead to the hub. */
static void test_another_key_at_one_address(void **state)
{
    struct asking a;
    struct gate g;

    gate_start(&g, 1);
    asking_init(&a, g.server, "a");
    a.token.n_api = 2;
    (void)snprintf(a.token.api[1], sizeof(a.token.api[1]), "%s", sample_daemon.https);
    a.token.pin.b[0] ^= 1;
    assert_int_equal(ask(&a, LONG), CLIENT_E_UNTRUSTED);
    assert_int_equal(gate_stop(&g), 2);
    assert_int_equal(a.n_waits, 1);
}

/* On a machine that is so busy that the first request takes all the patience, there is but one. */
static void test_patience_ends(void **state)
{
    struct asking a;
    char words[64];
    struct gate g;
    unsigned n;

    gate_start(&g, 1000);
    asking_init(&a, g.server, "a");
    assert_int_equal(ask(&a, NSEC_PER_SEC / 2), CLIENT_E_UNREACHABLE);
    n = gate_stop(&g);
    assert_in_range(n, 1, 20);
    assert_int_equal(a.n_waits, n > 1);
    (void)snprintf(words, sizeof(words), "asked %u times: the hub cannot be asked: ", n);
    if (n == 1)
        (void)snprintf(words, sizeof(words), "the hub cannot be asked: ");
    assert_memory_equal(a.e.text, words, strlen(words));
}

static void test_no_patience(void **state)
{
    struct asking a;
    struct gate g;

    gate_start(&g, 1000);
    asking_init(&a, g.server, "a");
    assert_int_equal(ask(&a, 0), CLIENT_E_UNREACHABLE);
    assert_int_equal(gate_stop(&g), 1);
    assert_int_equal(a.n_waits, 0);
    assert_memory_equal(a.e.text, "the hub cannot be asked: ", 25);
}

/* What a proxy refuses it refuses the next time as well; one that does not reach the hub may. */
static void test_proxies(void **state)
{
    static const char *const refusing[] = {CANNED_STATUS("407 Proxy Authentication Required")};
    static const char *const away[] = {
        CANNED_STATUS("502 Bad Gateway"), NULL, CANNED_STATUS("407 Proxy Authentication Required")};

    for (unsigned i = 0; i < 2; i++) {
        struct canned_server s;
        struct asking a;
        struct gate g;

        canned_server_start(&s, i ? away : refusing, i ? 3 : 1);
        gate_start(&g, 1000);
        asking_init(&a, g.server, "a");
        a.options.proxy = s.url;
        assert_int_equal(ask(&a, LONG), CLIENT_E_UNREACHABLE);
        canned_server_join(&s);
        assert_int_equal(gate_stop(&g), i ? 3 : 1);
        assert_int_equal(a.n_waits, i);
        assert_non_null(strstr(a.e.text, "through the proxy 127.0.0.1:"));
    }
}

/* One that nobody listens on is passed over, and that is said. */
static void test_a_proxy_that_is_away(void **state)
{
    struct asking a;

    asking_init(&a, sample_daemon.https, "a");
    a.options.proxy = "http://127.0.0.1:1";
    assert_int_equal(ask(&a, LONG), 0);
    assert_int_equal(a.n_passed_over, 1);
    client_answer_deinit(&a.answer);
    /* What the hub says is what counts then. */
    asking_init(&a, sample_daemon.https, "strange");
    a.options.proxy = "http://127.0.0.1:1";
    assert_int_equal(ask(&a, LONG), CLIENT_E_REFUSED);
    assert_string_equal(a.e.text, "the hub refuses: asked 1 times");
    assert_int_equal(a.n_passed_over, 1);
    client_answer_deinit(&a.answer);
}

/* A further hub of the token, at that address. */
static void add_other(struct asking *a, const char *api)
{
    struct token_other *other = &a->token.others[a->token.n_others++];

    *other = (struct token_other){.n_api = 1, .pin = sample_daemon.pin};
    (void)snprintf(other->api[0], sizeof(other->api[0]), "%s", api);
}

/* The first hub that answers is the one. */
static void test_a_further_hub_answers(void **state)
{
    struct asking a;

    asking_init(&a, "127.0.0.1:1", "a");
    add_other(&a, "127.0.0.1:2");
    add_other(&a, sample_daemon.https);
    add_other(&a, "127.0.0.1:3");
    assert_int_equal(ask(&a, LONG), 0);
    assert_int_equal(times_asked(&a), 1);
    assert_int_equal(a.n_waits, 0);
    assert_ptr_equal(a.hub, &a.token.others[1].key);
    client_answer_deinit(&a.answer);
    /* Where the first one answers no other one is asked. */
    asking_init(&a, sample_daemon.https, "a");
    add_other(&a, "127.0.0.1:2");
    assert_int_equal(ask(&a, LONG), 0);
    assert_ptr_equal(a.hub, &a.token.hub_key);
    client_answer_deinit(&a.answer);
}

/* What a further hub says is said; that it is not there is not. */
static void test_words_about_further_hubs(void **state)
{
    struct asking a;

    asking_init(&a, "127.0.0.1:1", "strange");
    add_other(&a, sample_daemon.https);
    assert_int_equal(ask(&a, LONG), CLIENT_E_REFUSED);
    assert_string_equal(a.e.text, "the hub refuses: asked 1 times");
    assert_int_equal(a.n_waits, 0);
    client_answer_deinit(&a.answer);
    asking_init(&a, "127.0.0.1:1", "a");
    a.token.n_api = 2;
    (void)snprintf(a.token.api[1], sizeof(a.token.api[1]), "127.0.0.1:2");
    add_other(&a, "127.0.0.1:3");
    assert_int_equal(ask(&a, 0), CLIENT_E_UNREACHABLE);
    assert_non_null(strstr(a.e.text, "127.0.0.1:1"));
    assert_non_null(strstr(a.e.text, "; "));
    assert_non_null(strstr(a.e.text, "127.0.0.1:2"));
    assert_null(strstr(a.e.text, "127.0.0.1:3"));
    assert_memory_not_equal(a.e.text, "the hub cannot be asked: ;", 26);
}

/* The failure of one of them may pass, and so all are asked again. */
static void test_a_further_hub_may_be_back(void **state)
{
    static const char *const answers[] = {CANNED_STATUS("407 Proxy Authentication Required"),
        CANNED_STATUS("502 Bad Gateway"), CANNED_STATUS("407 Proxy Authentication Required"),
        CANNED_STATUS("407 Proxy Authentication Required")};
    struct canned_server s;
    struct asking a;

    canned_server_start(&s, answers, 4);
    asking_init(&a, "127.0.0.1:1", "a");
    add_other(&a, "127.0.0.1:2");
    a.options.proxy = s.url;
    assert_int_equal(ask(&a, LONG), CLIENT_E_UNREACHABLE);
    canned_server_join(&s);
    assert_int_equal(a.n_waits, 1);
    assert_int_equal(a.n_passed_over, 0);
}

/* With a key of a hub that nobody can have nothing can be proven. */
static void test_a_key_that_nobody_can_have(void **state)
{
    const struct x25519_secret secret = {.b = {7, [31] = 0x40}};
    struct x25519_public public;
    struct asking a;

    asking_init(&a, sample_daemon.https, "a");
    assert_true(x25519_derive_public(&secret, &public));
    assert_int_equal(
        join_ask(&a.options, &secret, &public, LONG, &a.answer, &a.hub, &a.e), -EINVAL);
    assert_string_equal(a.e.text, "the hub's key in the token is one that nobody can have");
    assert_int_equal(a.n_waits, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connections_that_are_reset),
        cmocka_unit_test(test_a_busy_hub),
        cmocka_unit_test(test_what_is_refused_is_not_asked_again),
        cmocka_unit_test(test_what_is_refused_to_a_host),
        cmocka_unit_test(test_another_key_is_not_asked_again),
        cmocka_unit_test(test_another_key_at_one_address),
        cmocka_unit_test(test_patience_ends),
        cmocka_unit_test(test_no_patience),
        cmocka_unit_test(test_proxies),
        cmocka_unit_test(test_a_proxy_that_is_away),
        cmocka_unit_test(test_a_further_hub_answers),
        cmocka_unit_test(test_words_about_further_hubs),
        cmocka_unit_test(test_a_further_hub_may_be_back),
        cmocka_unit_test(test_a_key_that_nobody_can_have),
    };

    return cmocka_run_group_tests(tests, sample_start, sample_stop);
}
