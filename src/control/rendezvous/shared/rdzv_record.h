/*
 * rdzv_record.h - what a rendezvous keeps in the hub's store: keys, and values to and from bytes.
 *
 *     rdzv/NET/JOB             the job: its port, how many runs it has had, if the last is over
 *     rdzv/NET/JOB/t/HASH      an entry of its TCPStore
 *     rdzv/NET/JOB/e/HASH      a node of its etcd tree
 *
 * HASH is the BLAKE2s of the entry's own key or path, in hex, because those may hold any byte and
 * be longer than a key of the store. An entry is a run of bytes, its *blob*.
 *
 * The value at HASH is "RUN.SLOT.N.BYTES": the run of the job that it belongs to, and how many
 * pieces the blob has, of which this is the first. What is of another run than the job's current
 * one is garbage that has not been deleted yet. The other pieces lie at HASH/SLOT001, HASH/SLOT002
 * and so on. A blob is written anew into the slot that it is not in, with its first piece last: so
 * a blob of many pieces may be written in several commits, and whenever the hub dies the first
 * piece names pieces that are complete.
 *
 * Hubs before the runs wrote "BYTES" at HASH and at HASH/01, HASH/02; those are still read. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "base/str.h"

struct err;

/** Room for a key, with the terminating zero. */
#define RDZV_KEY_MAX 256

/** What all of our keys start with. */
#define RDZV_KEY_PREFIX "rdzv/"

/** Bytes of a blob in one value of the store. */
#define RDZV_CHUNK 48000u

/** Longest blob, and the chunks that it makes. */
#define RDZV_BLOB_MAX   (9u << 20)
#define RDZV_CHUNKS_MAX (RDZV_BLOB_MAX / RDZV_CHUNK + 1)

/* Where the pieces of a blob are, beside the first. */
#define RDZV_SLOT_NONE '-' /* there are none */
#define RDZV_SLOT_A    'a'
#define RDZV_SLOT_B    'b'
#define RDZV_SLOT_OLD  '0' /* as hubs before the runs wrote them */

enum rdzv_key_kind {
    RDZV_KEY_NONE,  /* none of ours */
    RDZV_KEY_JOB,   /* rdzv/NET/JOB */
    RDZV_KEY_ENTRY, /* .../t/HASH */
    RDZV_KEY_NODE,  /* .../e/HASH */
    RDZV_KEY_N,
};

/** What a blob is called. */
struct rdzv_hash {
    uint8_t b[32];
};

/** A key's parts. */
struct rdzv_key {
    enum rdzv_key_kind kind;
    char network[NAME_MAX_LEN + 1];
    char job[NAME_MAX_LEN + 1];
    struct rdzv_hash hash; /* not for a job */
    char slot;             /* of a piece that is not the first */
    unsigned piece;        /* 0: the first */
};

/** What the value of a blob's first piece says beside bytes. */
struct rdzv_head {
    uint32_t run;      /* that it belongs to; 0: a hub from before the runs wrote it */
    char slot;         /* RDZV_SLOT_... */
    unsigned n_pieces; /* at least 1; 0: not known, by a hub from before the runs */
};

/** rdzv/NET/JOB */
struct rdzv_job_record {
    uint16_t port;  /* where it is served */
    uint32_t run;   /* number of the current one, from 1 */
    bool ended;     /* it is over: who comes next begins another */
    bool has_heads; /* what hubs from before the runs wrote is garbage */
};

/** rdzv_key_parse() - kind RDZV_KEY_NONE when it is no key of ours. */
struct rdzv_key rdzv_key_parse(const char *key);

/** rdzv_key_of_job() - into @buf, which it returns. */
const char *rdzv_key_of_job(char buf[static RDZV_KEY_MAX], const char *network, const char *job);

/** rdzv_hash_of() - what the blob of @name (@len bytes) is called. */
struct rdzv_hash rdzv_hash_of(const void *name, size_t len);

/** rdzv_key_of_blob() - of its first piece; returns @buf. */
const char *rdzv_key_of_blob(char buf[static RDZV_KEY_MAX], enum rdzv_key_kind kind,
    const char *network, const char *job, const struct rdzv_hash *hash);

/** rdzv_key_of_piece() - another @piece of the blob whose first is at @first; returns @buf. */
const char *rdzv_key_of_piece(
    char buf[static RDZV_KEY_MAX], const char *first, char slot, unsigned piece);

/** rdzv_pieces() - how many a blob of @len bytes has; at least 1. */
unsigned rdzv_pieces(size_t len);

/** rdzv_piece_encode() - @len bytes, at most RDZV_CHUNK, as a value; free(). NULL: no memory. */
char *rdzv_piece_encode(const void *p, size_t len);

/** rdzv_head_encode() - the same for the first piece. */
char *rdzv_head_encode(const struct rdzv_head *head, const void *p, size_t len);

/** rdzv_piece_decode() - a value's bytes, at most RDZV_CHUNK, into @buf. 0 or -EINVAL with words.
 */
int rdzv_piece_decode(
    uint8_t buf[static RDZV_CHUNK], size_t *ret_len, const char *text, struct err *e);

/**
 * rdzv_head_parse() - what the value of a first piece says beside bytes
 * @ret_at:	where they begin in @text
 *
 * Return: 0 or -EINVAL with words.
 */
int rdzv_head_parse(struct rdzv_head *ret, size_t *ret_at, const char *text, struct err *e);

/** rdzv_head_decode() - the same, and the bytes. */
int rdzv_head_decode(struct rdzv_head *ret, uint8_t buf[static RDZV_CHUNK], size_t *ret_len,
    const char *text, struct err *e);

/** rdzv_job_encode() - to text; owned by the caller, free(); NULL: no memory. */
char *rdzv_job_encode(const struct rdzv_job_record *job);

/** rdzv_job_decode() - from text. 0 or -EINVAL with words. */
int rdzv_job_decode(struct rdzv_job_record *ret, const char *text, struct err *e);
