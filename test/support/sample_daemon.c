/* sample_daemon.c - see sample_daemon.h. */
#include "test/support/sample_daemon.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "api/server/server.h"
#include "api/server/stream.h"
#include "api/server/tls_front.h"
#include "base/containers.h"
#include "base/err.h"
#include "base/secret.h"
#include "os/clock.h"

/* A stream of numbered lines, for ever or for so many. */
struct numbers {
    struct stream stream;
    unsigned next;
    unsigned n;
    size_t len; /* of each line */
};

static void numbers_more(struct stream *st, nsec_t now)
{
    struct numbers *nr = container_of(st, struct numbers, stream);
    char *text = calloc(1, nr->len + 1);

    while (nr->next < nr->n) {
        struct line *l;
        bool pushed;

        memset(text, 'x', nr->len);
        (void)snprintf(text, nr->len + 1, "%u", nr->next);
        l = line_new(text, nr->len);
        pushed = stream_push(st, l, clock_now());
        line_unref(l);
        if (!pushed)
            break;
        nr->next++;
    }
    free(text);
    if (nr->next == nr->n)
        stream_end(st);
}

static void numbers_free(struct stream *st)
{
    stream_deinit(st);
    free(container_of(st, struct numbers, stream));
}

static void handle_numbers(void *ctx, const struct request *rq, struct response *rs)
{
    struct numbers *nr = calloc(1, sizeof(*nr));

    stream_init(&nr->stream, numbers_more, numbers_free);
    nr->n = (unsigned)strtoul(rq->params[0], NULL, 10);
    nr->len = strtoul(rq->params[1], NULL, 10);
    rs->status = 200;
    rs->stream = &nr->stream;
}

static void never_more(struct stream *st, nsec_t now)
{
}

static void handle_silence(void *ctx, const struct request *rq, struct response *rs)
{
    struct numbers *nr = calloc(1, sizeof(*nr));

    stream_init(&nr->stream, never_more, numbers_free);
    rs->status = 200;
    rs->stream = &nr->stream;
}

/* A stream that others write to: POST /v1/say adds a line to the last one that was opened. */
static struct numbers *heard;

static void heard_closed(struct stream *st)
{
    if (heard && st == &heard->stream)
        heard = NULL;
    numbers_free(st);
}

static void handle_hear(void *ctx, const struct request *rq, struct response *rs)
{
    heard = calloc(1, sizeof(*heard));
    stream_init(&heard->stream, never_more, heard_closed);
    rs->status = 200;
    rs->stream = &heard->stream;
}

static void handle_say(void *ctx, const struct request *rq, struct response *rs)
{
    struct line *l = line_new(rq->params[0], strlen(rq->params[0]));

    rs->status = heard && stream_push(&heard->stream, l, rq->now) ? 204 : 409;
    line_unref(l);
}

/* Looks whether the one that hears is still there; as long as it is, 204. */
static void handle_check(void *ctx, const struct request *rq, struct response *rs)
{
    rs->status = heard ? 204 : 409;
    if (heard)
        stream_check(&heard->stream);
}

static uv_loop_t *the_loop;

/* A connection that becomes bytes, and gives back what it is sent; "bye" first ends it. */
struct echo {
    struct upgrade upgrade;
    uv_poll_t poll;
    int fd;
    bool is_open;
    size_t len; /* of what is to be sent back */
    size_t sent;
    char buf[65536];
};

static void echo_freed(uv_handle_t *h)
{
    free(h->data);
}

static void echo_stop(struct echo *ec)
{
    if (ec->is_open)
        uv_close((uv_handle_t *)&ec->poll, echo_freed);
    else
        free(ec);
}

static void on_echo(uv_poll_t *poll, int status, int events)
{
    struct echo *ec = poll->data;
    ssize_t n;

    if (ec->len == 0) {
        n = read(ec->fd, ec->buf, sizeof(ec->buf));
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0 || (n == 3 && memcmp(ec->buf, "bye", 3) == 0)) {
            uv_close((uv_handle_t *)poll, echo_freed);
            upgrade_end(&ec->upgrade);
            return;
        }
        ec->len = (size_t)n;
        ec->sent = 0;
    }
    n = write(ec->fd, ec->buf + ec->sent, ec->len - ec->sent);
    if (n > 0)
        ec->sent += (size_t)n;
    if (ec->sent == ec->len)
        ec->len = 0;
    (void)uv_poll_start(&ec->poll, ec->len > 0 ? UV_WRITABLE : UV_READABLE, on_echo);
}

static void echo_opened(struct upgrade *u, int fd, const void *early, size_t len)
{
    struct echo *ec = container_of(u, struct echo, upgrade);

    ec->fd = fd;
    ec->is_open = true;
    uv_poll_init(the_loop, &ec->poll, fd);
    ec->poll.data = ec;
    (void)uv_poll_start(&ec->poll, UV_READABLE, on_echo);
}

static void echo_closed(struct upgrade *u)
{
    echo_stop(container_of(u, struct echo, upgrade));
}

static void handle_upgrade(void *ctx, const struct request *rq, struct response *rs)
{
    struct echo *ec;

    if (!rq->authorization || strcmp(rq->authorization, "Sesame") != 0) {
        response_refuse(rs, 401, "the word is Sesame");
        return;
    }
    ec = calloc(1, sizeof(*ec));
    ec->upgrade =
        (struct upgrade){.protocol = "echo", .on_open = echo_opened, .on_closed = echo_closed};
    rs->status = 101;
    rs->upgrade = &ec->upgrade;
}

static void handle_health(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 200, json_pack("{s:b, s:i}", "ok", 1, "access", (int)rq->access));
}

static void handle_echo(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 201, json_pack("{s:O?, s:s}", "body", rq->body, "name", rq->params[0]));
}

static void handle_nothing(void *ctx, const struct request *rq, struct response *rs)
{
    response_empty(rs);
}

/* Of a node that is called "busy" it takes the third request, and one called "strange" not at all.
 */
static void handle_enrol(void *ctx, const struct request *rq, struct response *rs)
{
    const char *name = json_string_value(json_object_get(rq->body, "name"));
    static unsigned n_asked;

    n_asked++;
    if (name && strcmp(name, "busy") == 0 && n_asked < 3) {
        response_refuse(rs, 503, "busy: try again");
        return;
    }
    if (name && strcmp(name, "strange") == 0)
        response_refuse(rs, 401, "asked %u times", n_asked);
    else
        response_json(rs, 200, json_pack("{s:i}", "asked", (int)n_asked));
    n_asked = 0;
}

static const struct route routes[] = {
    {"GET", "/v1/health", API_ACCESS_PUBLIC | API_ACCESS_ADMIN | API_ACCESS_OVERLAY, handle_health,
        ""},
    {"POST", "/v1/echo/{name}", API_ACCESS_PUBLIC | API_ACCESS_ADMIN, handle_echo, ""},
    {"DELETE", "/v1/echo/{name}", API_ACCESS_ADMIN, handle_nothing, "", ROLE_ADMIN},
    {"GET", "/v1/numbers/{n}/{len}", API_ACCESS_PUBLIC | API_ACCESS_ADMIN, handle_numbers, ""},
    {"GET", "/v1/silence", API_ACCESS_ADMIN, handle_silence, "", ROLE_VIEWER},
    {"GET", "/v1/hear", API_ACCESS_PUBLIC | API_ACCESS_ADMIN, handle_hear, ""},
    {"POST", "/v1/say/{n}", API_ACCESS_ADMIN, handle_say, "", ROLE_ADMIN},
    {"POST", "/v1/check", API_ACCESS_ADMIN, handle_check, "", ROLE_ADMIN},
    {"GET", "/v1/upgrade", API_ACCESS_PUBLIC | API_ACCESS_ADMIN, handle_upgrade, ""},
    {"POST", "/v1/enrol", API_ACCESS_PUBLIC, handle_enrol, ""},
    {"GET", "/v1/member", API_ACCESS_OVERLAY, handle_health, ""},
    ROUTES_END,
};

static enum caller_verdict identify(
    void *ctx, const char *bearer, const struct endpoint *from, nsec_t now, struct caller *ret)
{
    bool is_admin = strcmp(bearer, SAMPLE_BEARER) == 0;

    if (!is_admin && strcmp(bearer, SAMPLE_VIEWER) != 0)
        return CALLER_UNKNOWN;
    ret->role = is_admin ? ROLE_ADMIN : ROLE_VIEWER;
    memcpy(ret->name, "admin:test", sizeof("admin:test"));
    return CALLER_KNOWN;
}

static void on_term(uv_signal_t *sig, int signum)
{
    server_stop(sig->data);
    uv_close((uv_handle_t *)sig, NULL);
}

static void run_daemon(const char *dir, int ready)
{
    struct endpoint at = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct identity id = IDENTITY_NULL;
    struct err e = ERR_NULL;
    struct server *s;
    char key[128];
    char cert[128];
    char sock[128];
    uint16_t port;
    uv_loop_t loop;
    uv_signal_t sig;

    (void)snprintf(key, sizeof(key), "%s/tls.key", dir);
    (void)snprintf(cert, sizeof(cert), "%s/tls.crt", dir);
    (void)snprintf(sock, sizeof(sock), "%s/sock", dir);
    uv_loop_init(&loop);
    the_loop = &loop;
    uv_signal_init(&loop, &sig);
    if (identity_open(&id, key, cert, &e) != 0 ||
        server_new(&s,
            &(struct server_config){
                .loop = &loop, .routes = routes, .identity = &id, .identify = identify},
            &e) != 0 ||
        server_listen_tls(s, &at, &port, &e) != 0 ||
        server_listen_unix(s, sock, ROLE_ADMIN, &e) != 0) {
        (void)fprintf(stderr, "%s\n", err_text(&e));
        _exit(1);
    }
    sig.data = s;
    uv_signal_start(&sig, on_term, SIGTERM);
    if (write(ready, &port, sizeof(port)) != sizeof(port) ||
        write(ready, id.pin.b, sizeof(id.pin.b)) != sizeof(id.pin.b))
        _exit(1);
    identity_close(&id);
    uv_run(&loop, UV_RUN_DEFAULT);
    server_free(s);
    _exit(uv_loop_close(&loop) == 0 ? 0 : 2);
}

struct sample_daemon sample_daemon;

int sample_start(void **state)
{
    int ready[2];

    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(sample_daemon.dir, sizeof(sample_daemon.dir), "/tmp/weft-test-server.XXXXXX");
    if (!mkdtemp(sample_daemon.dir) || pipe(ready) < 0)
        return -1;
    (void)snprintf(sample_daemon.sock, sizeof(sample_daemon.sock), "%s/sock", sample_daemon.dir);
    sample_daemon.pid = fork();
    if (sample_daemon.pid == 0)
        run_daemon(sample_daemon.dir, ready[1]);
    (void)close(ready[1]);
    if (read(ready[0], &sample_daemon.port, sizeof(sample_daemon.port)) !=
            sizeof(sample_daemon.port) ||
        read(ready[0], sample_daemon.pin.b, sizeof(sample_daemon.pin.b)) !=
            sizeof(sample_daemon.pin.b))
        return -1;
    (void)close(ready[0]);
    (void)snprintf(
        sample_daemon.https, sizeof(sample_daemon.https), "127.0.0.1:%u", sample_daemon.port);
    return 0;
}

/* Ended in order, with a stream still open, the loop must come out empty. */
int sample_stop(void **state)
{
    static const char *const files[] = {"tls.key", "tls.crt"};
    char path[128];
    int status = 0;

    (void)kill(sample_daemon.pid, SIGTERM);
    (void)waitpid(sample_daemon.pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "the daemon ended with status %x\n", (unsigned)status);
        return -1;
    }
    if (access(sample_daemon.sock, F_OK) == 0) {
        (void)fprintf(stderr, "the socket is still there\n");
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", sample_daemon.dir, files[i]);
        (void)unlink(path);
    }
    return rmdir(sample_daemon.dir);
}

struct client_target sample_by_unix(void)
{
    return (struct client_target){.access = CLIENT_ACCESS_UNIX, .address = sample_daemon.sock};
}

struct client_target sample_by_https(void)
{
    return (struct client_target){
        .access = CLIENT_ACCESS_HTTPS, .address = sample_daemon.https, .pin = sample_daemon.pin};
}

struct client_answer sample_answer;
struct err sample_words;

int sample_call(struct client_target t, const char *method, const char *path, json_t *body)
{
    int r;

    client_answer_deinit(&sample_answer);
    sample_words = (struct err)ERR_NULL;
    r = client_call(&t, method, path, body, 5000, &sample_answer, &sample_words);
    json_decref(body);
    return r;
}
