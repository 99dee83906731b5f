/*
 * sample_engine.h - an engine without a data path, for tests of who sends frames through one.
 *
 * It keeps what was sent and what it was told, and gives what the test puts in.
 */
#pragma once

#include "engine/engine.h"
#include "engine/frames.h"
#include "mesh/config/wg_config.h"

#define SAMPLE_ENGINE_SENT_MAX 512
#define SAMPLE_ENGINE_SENT_LEN 1500

struct sample_engine {
    struct engine engine;
    struct engine_frames frames;
    bool refuses;       /* to open frames */
    bool is_gone;       /* says so when something is sent or received, or when it is asked */
    bool cannot_retire; /* it is a process that cannot hand its interface over */
    bool is_old;        /* it is an older version, which keeps no rates */
    bool is_closed;     /* the test's owner has let go of it */
    const struct offloads *offloads; /* borrowed; which it uses; NULL: it does not say */
    struct wg_config config;         /* owns; what it was told; the test may change it */
    unsigned n_applied;              /* changes that reached it */
    size_t n_touched;                /* peers that the last of them was about */
    unsigned n_handshakes;           /* that it was asked for */
    unsigned n_open;                 /* frames that are */
    unsigned n_opened;
    struct engine_frame in; /* the next to be received */
    bool has_in;
    struct endpoint sent_to[SAMPLE_ENGINE_SENT_MAX];              /* the oldest first */
    uint8_t sent[SAMPLE_ENGINE_SENT_MAX][SAMPLE_ENGINE_SENT_LEN]; /* the first bytes */
    size_t sent_len[SAMPLE_ENGINE_SENT_MAX];                      /* of the whole */
    bool sent_whole[SAMPLE_ENGINE_SENT_MAX];                      /* may not be fragmented */
    unsigned n_sent;
    struct engine_frame last; /* of them, whole */
};

/** sample_engine_init() - of that kind. */
void sample_engine_init(struct sample_engine *se, enum engine_kind kind);
void sample_engine_deinit(struct sample_engine *se);

/** sample_engine_find() - lends the peer of that key in what it was told; NULL: none. */
struct wg_peer *sample_engine_find(struct sample_engine *se, const struct x25519_public *key);

/** sample_engine_put() - @len bytes arrive from @remote; one at a time. */
void sample_engine_put(
    struct sample_engine *se, const struct endpoint *remote, const uint8_t *data, size_t len);
