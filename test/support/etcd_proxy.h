/*
 * etcd_proxy.h - stands between a client of etcd's and one of its members, and loses what it is
 * told to lose.
 *
 * It passes HTTP/1.1 on, a request at a time: before each one it asks whether that one, or its
 * answer, is to be lost. Then both connections end, as when a machine on the way goes.
 *
 * Threads: the rules are called in a thread of each connection, one at a time.
 */
#pragma once

struct etcd_proxy;

/** What becomes of a request. */
enum etcd_proxy_fate {
    ETCD_PROXY_PASS,
    ETCD_PROXY_LOSE_REQUEST, /* etcd does not hear of it */
    ETCD_PROXY_LOSE_ANSWER,  /* etcd has done it, and the client does not hear of that */
    ETCD_PROXY_HOLD_ANSWER,  /* the same, and the connection stays until the client hangs up */
};

struct etcd_proxy_rules {
    void *ctx; /* pins */

    /* @path: of the request, such as "/v3/kv/txn". */
    enum etcd_proxy_fate (*decide)(void *ctx, const char *path);

    /* Etcd has answered, and the client's connection is about to end. NULL: nothing is done. */
    void (*lost)(void *ctx);

    /* The client has hung up before a byte of the answer came: its patience was over, or it ended.
     * NULL: nothing is done. */
    void (*given_up)(void *ctx);
};

/** etcd_proxy_start() - in front of @server, HOST:PORT with HOST in digits. */
struct etcd_proxy *etcd_proxy_start(const char *server, const struct etcd_proxy_rules *rules);

/** etcd_proxy_server() - where it listens, as HOST:PORT; borrowed. */
const char *etcd_proxy_server(const struct etcd_proxy *p);

/** etcd_proxy_free() - end all connections. NULL is fine. Always NULL. */
struct etcd_proxy *etcd_proxy_free(struct etcd_proxy *p);
