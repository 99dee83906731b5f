/* userspace.c - the engine that runs in a process: see engine.h. */
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "engine/engine_access.h"
#include "engine/frames.h"
#include "engine/uapi_client.h"
#include "mesh/config/wg_config.h"
#include "net/socket/unix_socket.h"
#include "net/tun/offload.h"
#include "net/tun/tun.h"
#include "os/file.h"
#include "os/process.h"
#include "uapi/uapi.h"

#define ANSWER_MAX       (64u << 20) /* 65,536 peers, and room */
#define ANSWER_TIMEOUT_S 5
#define START_TIMEOUT_MS 5000

struct userspace {
    struct engine engine;
    engine_transport_fn fn;
    void *ctx;                 /* pins, or is @path */
    char *path;                /* owns; of the socket; NULL behind a function of the caller's */
    char *interface;           /* owns; the same */
    struct uapi_abilities can; /* as far as it has said so */
};

/* ---- engine_ops ----------------------------------------------------------------------------- */

static int userspace_get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int r = u->fn(u->ctx, UAPI_CLIENT_GET, strlen(UAPI_CLIENT_GET), &out, e);

    return r == 0 ? uapi_client_decode(ret, str_text(&out), out.len, e) : r;
}

static int request(struct userspace *u, const struct str *in, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int r = in->failed ? -ENOMEM : u->fn(u->ctx, str_text(in), in->len, &out, e);

    return r == 0 ? uapi_client_result(str_text(&out), out.len, e) : r;
}

static int userspace_apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    _cleanup_(str_deinit) struct str in = STR_NULL;

    uapi_client_encode(d, secret, &in);
    return request((struct userspace *)engine, &in, e);
}

static int userspace_handshake(
    struct engine *engine, const struct x25519_public *peer, struct err *e)
{
    _cleanup_(str_deinit) struct str in = STR_NULL;

    uapi_client_encode_handshake(peer, &in);
    return request((struct userspace *)engine, &in, e);
}

/* Either may be NULL. */
static int ask_stats(
    struct userspace *u, struct offloads *offloads, struct uapi_abilities *can, struct err *e)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int r = u->fn(u->ctx, UAPI_CLIENT_STATS, strlen(UAPI_CLIENT_STATS), &out, e);

    return r == 0 ? uapi_client_decode_stats(offloads, can, str_text(&out), out.len, e) : r;
}

static int userspace_offloads(struct engine *engine, struct offloads *ret, struct err *e)
{
    return ask_stats((struct userspace *)engine, ret, NULL, e);
}

/* Asked once: a process that is replaced is another engine. */
static int userspace_check_rates(struct engine *engine, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    int r = u->can.keeps_rates ? 0 : ask_stats(u, NULL, &u->can, e);

    if (r != 0 || u->can.keeps_rates)
        return r;
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the data plane that runs is of an older version, which keeps no rates and shows no "
        "DSCP: \"weft agent "
        "--renew-engine\" replaces it");
}

static int userspace_check_next_keys(struct engine *engine, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    int r = u->can.has_next_keys ? 0 : ask_stats(u, NULL, &u->can, e);

    if (r != 0 || u->can.has_next_keys)
        return r;
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the data plane that runs is of an older version, which answers under one key: \"weft "
        "agent --renew-engine\" replaces it");
}

/* Asked first: an older version would take none of the lines, and complain of them in its log. */
static int check_access(struct userspace *u, struct err *e)
{
    int r = u->can.has_access ? 0 : ask_stats(u, NULL, &u->can, e);

    if (r != 0 || u->can.has_access)
        return r;
    return err_set(e, ENGINE_E_UNSUPPORTED,
        "the data plane that runs is of an older version, which goes by no rules: \"weft agent "
        "--renew-engine\" replaces it");
}

static int userspace_set_access(
    struct engine *engine, const char *lines, uint64_t tag, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    _cleanup_(str_deinit) struct str in = STR_NULL;
    int r = check_access(u, e);

    if (r != 0)
        return r;
    engine_access_encode(lines, tag, &in);
    return request(u, &in, e);
}

static int userspace_get_access(struct engine *engine, struct engine_access *ret, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int r = check_access(u, e);

    if (r == 0)
        r = u->fn(u->ctx, ENGINE_ACCESS_READ, strlen(ENGINE_ACCESS_READ), &out, e);
    return r == 0 ? engine_access_decode(ret, str_text(&out), out.len, e) : r;
}

/* The process that serves the socket now; 0: not known. */
static pid_t listener_of(const char *path)
{
    _cleanup_(closep) int fd = unix_socket_connect(path, SOCK_STREAM);

    return fd < 0 ? 0 : unix_socket_peer(fd);
}

static int userspace_retire(struct engine *engine, struct err *e)
{
    struct userspace *u = (struct userspace *)engine;
    _cleanup_(str_deinit) struct str out = STR_NULL;
    pid_t pid;
    int r;

    if (!u->path)
        return err_set(e, ENGINE_E_UNSUPPORTED, "this engine is part of another process");
    /* It is waited for, since its port is its own until it ends. */
    pid = listener_of(u->path);
    r = u->fn(u->ctx, UAPI_CLIENT_HAND_OVER, strlen(UAPI_CLIENT_HAND_OVER), &out, e);
    if (r != 0)
        return r;
    if (uapi_client_result(str_text(&out), out.len, e) < 0) {
        (void)err_prefix(e, "the process that runs %s cannot hand it over", u->interface);
        return ENGINE_E_UNSUPPORTED;
    }
    r = pid > 0 ? process_wait_end(pid, START_TIMEOUT_MS) : 0;
    return r < 0 ? err_set(e, r, "the process that ran %s does not end", u->interface) : 0;
}

static int userspace_open_frames(
    struct engine *engine, struct engine_frames **ret, uint16_t port, struct err *e)
{
    const struct userspace *u = (const struct userspace *)engine;

    if (!u->interface)
        return err_set(e, -EOPNOTSUPP, "an engine behind a function has no frame socket");
    return engine_frames_open_socket(ret, u->interface, e);
}

static void userspace_close(struct engine *engine)
{
    struct userspace *u = (struct userspace *)engine;

    free(u->path);
    free(u->interface);
    free(u);
}

static const struct engine_ops userspace_ops = {
    .kind = ENGINE_KIND_USERSPACE,
    .get = userspace_get,
    .apply = userspace_apply,
    .handshake = userspace_handshake,
    .offloads = userspace_offloads,
    .check_rates = userspace_check_rates,
    .check_next_keys = userspace_check_next_keys,
    .set_access = userspace_set_access,
    .get_access = userspace_get_access,
    .retire = userspace_retire,
    .open_frames = userspace_open_frames,
    .close = userspace_close,
};

int engine_userspace_new(struct engine **ret, engine_transport_fn fn, void *ctx)
{
    struct userspace *u = calloc(1, sizeof(*u));

    if (!u)
        return -ENOMEM;
    u->engine.ops = &userspace_ops;
    u->fn = fn;
    u->ctx = ctx;
    *ret = &u->engine;
    return 0;
}

/* ---- over the socket ------------------------------------------------------------------------ */

static int connect_socket(const char *path)
{
    struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
    _cleanup_(closep) int fd = unix_socket_connect(path, SOCK_STREAM);

    if (fd < 0)
        return fd;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int send_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

static int receive_answer(int fd, struct str *out)
{
    char buf[16384];
    int r = 0;

    /* An answer ends with an empty line, and there is no other in it. */
    while (r == 0 && !(out->len >= 2 && memcmp(out->text + out->len - 2, "\n\n", 2) == 0)) {
        ssize_t n = recv(fd, buf, sizeof(buf), 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            r = errno == EAGAIN ? -ETIMEDOUT : -errno;
        else if (n == 0)
            r = -ECONNRESET;
        else if (out->len + (size_t)n > ANSWER_MAX)
            r = -EMSGSIZE;
        else
            str_add_bytes(out, buf, (size_t)n);
        if (out->failed)
            r = -ENOMEM;
    }
    secret_wipe(buf, sizeof(buf));
    return r;
}

static bool means_gone(int r)
{
    return r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET || r == -EPIPE;
}

static int socket_transport(void *ctx, const char *in, size_t len, struct str *out, struct err *e)
{
    const char *path = ctx;
    _cleanup_(closep) int fd = connect_socket(path);
    int r = fd < 0 ? fd : send_all(fd, in, len);

    if (r == 0)
        r = receive_answer(fd, out);
    if (r < 0)
        return err_set(e, means_gone(r) ? ENGINE_E_GONE : r,
            "the userspace engine does not answer on %s: %s", path, strerror(-r));
    return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int start_process(const char *interface, const char *timestamps, struct err *e)
{
    char self[PATH_MAX];
    const char *const argv[] = {process_self_path(self), "wg", "--take-over", interface,
        timestamps ? "--timestamps" : NULL, timestamps, NULL};
    int r = process_run(argv, START_TIMEOUT_MS, e);

    if (r == 0)
        return 0;
    (void)err_prefix(e, "the userspace engine for %s does not start", interface);
    return r < 0 ? r : -EIO;
}

bool engine_userspace_is_served(const char *interface)
{
    _cleanup_(freep) char *path = NULL;
    _cleanup_(closep) int fd = -1;

    if (asprintf(&path, "%s/%s.sock", UAPI_SOCKET_DIR, interface) < 0) {
        path = NULL;
        return false;
    }
    fd = unix_socket_connect(path, SOCK_STREAM);
    return fd >= 0;
}

int engine_userspace_open(
    struct engine **ret, const char *interface, const char *timestamps, struct err *e)
{
    _cleanup_(freep) char *path = NULL;
    _cleanup_(freep) char *name = strdup(interface);
    struct userspace *u;
    struct engine *engine;
    int fd;
    int r;

    if (!name || asprintf(&path, "%s/%s.sock", UAPI_SOCKET_DIR, interface) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    fd = connect_socket(path);
    if (fd >= 0)
        (void)close(fd);
    else if (!means_gone(fd))
        return err_set(e, fd, "%s cannot be used: %s", path, strerror(-fd));
    r = fd >= 0 ? 0 : start_process(interface, timestamps, e);
    if (r == 0)
        r = engine_userspace_new(&engine, socket_transport, NULL);
    if (r < 0)
        return r;
    u = (struct userspace *)engine;
    u->path = TAKE_PTR(path);
    u->interface = TAKE_PTR(name);
    u->ctx = u->path;
    *ret = engine;
    return 0;
}

int engine_userspace_check(const char *interface, struct err *e)
{
    struct offloads offloads = {0};
    struct tun tun = TUN_NULL;
    int r = statefile_make_dir(UAPI_SOCKET_DIR, 0755, e);

    /* Where the data plane is configured. */
    if (r == 0 && access(UAPI_SOCKET_DIR, W_OK) < 0)
        r = err_set(
            e, -errno, "sockets cannot be made in " UAPI_SOCKET_DIR ": %s", strerror(errno));
    if (r == 0)
        r = tun_open(&tun, interface, 1, &offloads, e);
    tun_close(&tun);
    return r;
}
