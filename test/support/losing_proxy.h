/*
 * losing_proxy.h - stands between a client and a server of HTTP, such as a member of etcd, and
 * loses what it is told to lose.
 *
 * It passes HTTP/1.1 on, a request at a time: before each one it asks whether that one, or its
 * answer, is to be lost. Then both connections end, as when a machine on the way goes.
 *
 * Threads: the rules are called in a thread of each connection, one at a time.
 */
#pragma once

struct losing_proxy;

/** What becomes of a request. */
enum losing_proxy_fate {
    LOSING_PROXY_PASS,
    LOSING_PROXY_LOSE_REQUEST, /* the server does not hear of it */
    LOSING_PROXY_LOSE_ANSWER,  /* it was done, and the client does not hear of that */
    LOSING_PROXY_HOLD_ANSWER,  /* the same, and the connection stays until the client hangs up */
};

struct losing_proxy_rules {
    void *ctx; /* pins */

    /* @path: of the request, such as "/v3/kv/txn". */
    enum losing_proxy_fate (*decide)(void *ctx, const char *path);

    /* The server has answered, and the client's connection is about to end. NULL: nothing is done.
     */
    void (*lost)(void *ctx);

    /* The client has hung up before a byte of the answer came: its patience was over, or it ended.
     * NULL: nothing is done. */
    void (*given_up)(void *ctx);
};

/** losing_proxy_start() - in front of @server, HOST:PORT with HOST in digits. */
struct losing_proxy *losing_proxy_start(const char *server, const struct losing_proxy_rules *rules);

/** losing_proxy_server() - where it listens, as HOST:PORT; borrowed. */
const char *losing_proxy_server(const struct losing_proxy *p);

/** losing_proxy_free() - end all connections. NULL is fine. Always NULL. */
struct losing_proxy *losing_proxy_free(struct losing_proxy *p);
