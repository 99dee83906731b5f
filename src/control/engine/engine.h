/*
 * engine.h - one interface, two data paths.
 *
 * An engine runs WireGuard for one network interface: the userspace one in
 * `weft wg`, a process that outlives whoever started it, and the kernel's own.
 * It is asked what it has (get) and told what to change (apply); everything
 * else about the interface (addresses, routes, MTU) is the same for both and
 * not its business.
 *
 * Calls wait for the answer, at most some seconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/x25519.h"

struct diff;
struct engine;
struct engine_access;
struct engine_frames;
struct offloads;
struct str;
struct wg_config;

/** The engine or its interface is not there any more: open a new one. */
#define ENGINE_E_GONE 1
/** This kind does not run on this machine. */
#define ENGINE_E_UNSUPPORTED 2

enum engine_kind {
    ENGINE_KIND_AUTO, /* the kernel's if there is one, else userspace */
    ENGINE_KIND_USERSPACE,
    ENGINE_KIND_KERNEL,
    ENGINE_KIND_N,
};

/** What a data path implements. Close it with engine_close(). */
struct engine_ops {
    enum engine_kind kind;

    /* For engine_get() alone: @ret need not be sorted. */
    int (*get)(struct engine *engine, struct wg_config *ret, struct err *e);

    /* For engine_apply() alone: @d is not empty. */
    int (*apply)(struct engine *engine, const struct diff *d, const struct x25519_secret *secret,
        struct err *e);

    /*
     * Have a peer begin a handshake now, whatever session there is.
     *
     * A relay passes on only what belongs to a handshake that it has seen; after an edge was moved
     * to one, or one has forgotten, this is what tells it. The userspace engine keeps the old
     * session until the new one is there; the kernel's is made to by taking the peer away and
     * adding it again, so what is on its way to it meanwhile is lost.
     *
     * Return: as engine_get(); -ENOENT with words when there is no such peer.
     */
    int (*handshake)(struct engine *engine, const struct x25519_public *peer, struct err *e);

    /*
     * Which of the kernel's segmentation offloads it uses, and why not the rest.
     *
     * Return: as engine_get(); ENGINE_E_UNSUPPORTED without words for the kernel's own.
     */
    int (*offloads)(struct engine *engine, struct offloads *ret, struct err *e);

    /*
     * Does it keep rates?
     *
     * Return: 0; ENGINE_E_UNSUPPORTED with words, a clause: why it does not; or as engine_get().
     */
    int (*check_rates)(struct engine *engine, struct err *e);

    /*
     * Does it answer under two keys while one follows the other (below: changing keys)?
     *
     * Return: as check_rates().
     */
    int (*check_next_keys)(struct engine *engine, struct err *e);

    /*
     * Have it refuse by itself what the network's rules do not allow.
     *
     * @lines: as access/access_set.h has them, each with its newline; NULL: it lets all pass.
     * @tag: what get_access() calls them.
     *
     * Return: 0; ENGINE_E_UNSUPPORTED with words, a clause: why it cannot; or as engine_get().
     */
    int (*set_access)(struct engine *engine, const char *lines, uint64_t tag, struct err *e);

    /* What it has let in and refused by them; @ret is untouched on failure, else to be released
     * with engine_access_deinit(). Return: as set_access(). */
    int (*get_access)(struct engine *engine, struct engine_access *ret, struct err *e);

    /*
     * Have the process that runs the interface end, and the interface stay.
     *
     * Then the engine is gone, and engine_open() starts the program that is installed now, which
     * takes the interface as it is. What is on its way meanwhile is lost, and so are the sessions.
     *
     * Return: 0; ENGINE_E_UNSUPPORTED with words: there is no process, or it is one that cannot (of
     * another implementation, or of an older version); or as engine_get().
     */
    int (*retire)(struct engine *engine, struct err *e);

    /*
     * Path frames (frames.h) through its UDP port @port, on which it listens.
     *
     * Return: 0 and a thing to be closed by its ops; or negative errno with words.
     */
    int (*open_frames)(
        struct engine *engine, struct engine_frames **ret, uint16_t port, struct err *e);

    /* Let go of it; the interface stays. */
    void (*close)(struct engine *engine);
};

/** The first member of each data path's own struct. */
struct engine {
    const struct engine_ops *ops;
};

/** "auto", "userspace", "kernel". */
extern const char *const engine_kind_names[];

/** engine_kind_parse() - 0, or -EINVAL with words. */
int engine_kind_parse(enum engine_kind *ret, const char *text, struct err *e);

/** Room for engine_open()'s reason. */
#define ENGINE_WHY_MAX 160

/**
 * engine_open() - make the interface, or take up the one that is there
 * @wanted:	AUTO tries the kernel first
 * @interface:	its name
 * @timestamps:	where a userspace engine that is started keeps the time of its handshakes
 *		(os/timestamp_file.h); NULL: where `weft wg` does by itself
 * @why:	filled with a clause that says how AUTO chose; "" when it had no choice
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words; or negative errno with words.
 */
int engine_open(struct engine **ret, enum engine_kind wanted, const char *interface,
    const char *timestamps, char why[static ENGINE_WHY_MAX], struct err *e);

/**
 * engine_check() - could engine_open() make @interface, which is not there yet?
 *
 * Makes it and takes it away again: nothing less tells of the module, the device and the privileges
 * that it takes.
 *
 * Return: 0; or non-zero with words.
 */
int engine_check(enum engine_kind wanted, const char *interface, struct err *e);

/** engine_close() - the interface stays and works on. NULL is fine. Always NULL. */
struct engine *engine_close(struct engine *engine);

/**
 * engine_get() - what it has: keys, peers, and what it observed of them
 * @ret:	untouched on failure, else sorted, to be released with wg_config_deinit()
 *
 * Return: 0; ENGINE_E_GONE with words; or negative errno with words.
 */
int engine_get(struct engine *engine, struct wg_config *ret, struct err *e);

/**
 * engine_apply() - change it; an empty change does not reach it
 * @d:		without rates where check_rates() says that it keeps none, nor next keys where
 *		check_next_keys() says that it knows none
 * @secret:	the interface's private key, used when @d says that it has to be set
 *
 * Return: as engine_get(). After a failure a part may have been applied: get,
 * diff, and apply again.
 */
int engine_apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e);

/** engine_set_access() - as the operation; an engine that has none cannot. */
int engine_set_access(struct engine *engine, const char *lines, uint64_t tag, struct err *e);

/** engine_get_access() - the same. */
int engine_get_access(struct engine *engine, struct engine_access *ret, struct err *e);

/* ---- changing keys --------------------------------------------------------------------------- */

/*
 * A key changes by three configurations, each applied like any other: what is wanted says how it
 * is to be, so whatever was lost meanwhile, of the engine or of the caller, is made good by the
 * next one. No step loses a session, or a packet.
 *
 *                           wanted of the interface            of a peer that changes its key
 *     answered under both   .public = K1, .next_public = K2    .key = K1, .next_key = K2
 *     K2 is used            and .initiate_with_next = true     nothing: it follows what it hears
 *     K1 is wiped           .public = K2                       .key = K2
 *
 * The secrets are handed over beside it: engine_apply()'s @secret is that of .public, and the
 * change's next_secret that of .next_public. A peer that knows K1 alone, as a stock WireGuard whose
 * file names it, gets .initiate_with_current: it is answered under K1, and initiated to under K1.
 *
 * What is observed of a peer meanwhile: facts.heard_next, it has spoken under its next key (its
 * key may be replaced); facts.session_next, its last handshake was under our next key (it has it).
 *
 * An engine that cannot (check_next_keys()) is given none of it: wg_config_clear_next_keys().
 */

/* ---- the kernel's own WireGuard -------------------------------------------------------------- */

/**
 * engine_kernel_open() - the interface of that name, made if there is none
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: this kernel cannot make one, or
 * an interface of that name is of another kind; or negative errno with words.
 */
int engine_kernel_open(struct engine **ret, const char *interface, struct err *e);

/** engine_kernel_check() - as engine_check(). */
int engine_kernel_check(const char *interface, struct err *e);

/* ---- a process: `weft wg`, or any wireguard-go ----------------------------------------------- */

/*
 * It is asked in WireGuard's cross-platform protocol. How the text gets there is a function, so
 * that a hub can hand in the device that it runs itself.
 */

/**
 * engine_transport_fn - one request, one answer
 * @in:		@len bytes: "set=1" or "get=1", its lines, and an empty line
 * @out:	empty; gets the answer, which holds keys
 *
 * Return: 0; ENGINE_E_GONE with words; or negative errno with words.
 */
typedef int (*engine_transport_fn)(
    void *ctx, const char *in, size_t len, struct str *out, struct err *e);

/**
 * engine_userspace_new() - an engine behind a function
 * @fn:		called for each get and apply, from within it
 * @ctx:	pinned: handed to @fn
 *
 * Return: 0 or -ENOMEM.
 */
int engine_userspace_new(struct engine **ret, engine_transport_fn fn, void *ctx);

/**
 * engine_userspace_open() - the process that runs @interface, started if there is none
 *
 * @timestamps:	as for engine_open()
 *
 * It is this program's own `weft wg`, in the background and in a session of its
 * own, so that it lives on when the caller ends.
 *
 * Return: 0 or negative errno with words.
 */
int engine_userspace_open(
    struct engine **ret, const char *interface, const char *timestamps, struct err *e);

/** engine_userspace_is_served() - does a process answer for @interface? */
bool engine_userspace_is_served(const char *interface);

/** engine_userspace_check() - as engine_check(). */
int engine_userspace_check(const char *interface, struct err *e);
