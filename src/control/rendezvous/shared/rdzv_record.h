/*
 * rdzv_record.h - what a rendezvous keeps in the hub's store: keys, and values to and from bytes.
 *
 *     rdzv/NET/JOB             the job: its port, how many runs it has had, whether the last is
 * over rdzv/NET/JOB/t/HASH      an entry of its TCPStore rdzv/NET/JOB/e/HASH      a node of its
 * etcd tree
 *
 * HASH is the BLAKE2s of the name of what is kept, in hex, since names may hold any byte and be
 * longer than a key of the store. What is kept there is a *blob* (rdzv_quota.h).
 *
 * The value at HASH is "RUN.SLOT.N.BYTES": the run of the job that the blob belongs to, the slot of
 * its other pieces, how many pieces it has, and the bytes of the first one. A blob of another run
 * than the job's current one is garbage that has not been deleted yet. The other pieces are at
 * HASH/SLOT001, HASH/SLOT002 and so on. A changed blob is written into the other slot, and its
 * first piece last. So a blob of many pieces may be written in several commits, and whenever the
 * hub dies, the first piece names pieces that are complete.
 *
 * Before there were runs, hubs wrote "BYTES" at HASH, HASH/01 and HASH/02; those are still read.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

/** Room for a key, with the terminating zero. */
#define RDZV_KEY_MAX 256

/** The beginning of all these keys. */
#define RDZV_KEY_PREFIX "rdzv/"

/** Bytes of a blob in one value of the store. */
#define RDZV_CHUNK 48000u

/** Longest blob, bytes, and how many pieces that is. */
#define RDZV_BLOB_MAX   (9u << 20)
#define RDZV_CHUNKS_MAX (RDZV_BLOB_MAX / RDZV_CHUNK + 1)

/* The slot of a blob's pieces behind the first. */
#define RDZV_SLOT_NONE '-' /* there are none */
#define RDZV_SLOT_A    'a'
#define RDZV_SLOT_B    'b'
#define RDZV_SLOT_OLD  '0' /* as hubs wrote them before there were runs */

enum rdzv_key_kind {
    RDZV_KEY_NONE,  /* none of ours */
    RDZV_KEY_JOB,   /* rdzv/NET/JOB */
    RDZV_KEY_ENTRY, /* .../t/HASH */
    RDZV_KEY_NODE,  /* .../e/HASH */
    RDZV_KEY_N,
};

/** The hash of a blob's name. */
struct rdzv_hash {
    uint8_t b[32];
};

/** A key's parts. */
struct rdzv_key {
    enum rdzv_key_kind kind;
    char network[NAME_MAX_LEN + 1];
    char job[NAME_MAX_LEN + 1];
    struct rdzv_hash hash; /* not for a job */
    char slot;             /* valid for a piece behind the first */
    unsigned piece;        /* its number; 0: the first */
};

/** What the value of a blob's first piece says before its bytes. */
struct rdzv_head {
    uint32_t run;      /* of the job; 0: written before there were runs */
    char slot;         /* RDZV_SLOT_... */
    unsigned n_pieces; /* at least 1; 0: not known, since it was written before there were runs */
};

/** Bytes of the names of a job's members, with a space between them, and a zero. */
#define RDZV_JOB_MEMBERS_MAX 2048

/** The value at rdzv/NET/JOB. */
struct rdzv_job_record {
    uint16_t port;                   /* where it is served */
    uint32_t run;                    /* number of the current one, from 1 */
    bool ended;                      /* it is over: the next client begins another */
    bool has_heads;                  /* blobs from before there were runs are garbage */
    char ended_on[NAME_MAX_LEN + 1]; /* a member whose command has ended in the current run, and is
                                        not there again; "": none is known */
    char members[RDZV_JOB_MEMBERS_MAX]; /* names of those of a job of fixed size, with a space
                                           between them; "": not known, or too many */
};

/** rdzv_key_parse() - kind RDZV_KEY_NONE when it is no key of ours. */
struct rdzv_key rdzv_key_parse(const char *key);

/** rdzv_key_of_job() - the key of a job; returns @buf. */
const char *rdzv_key_of_job(char buf[static RDZV_KEY_MAX], const char *network, const char *job);

/** rdzv_hash_of() - the hash of the name of @len bytes. */
struct rdzv_hash rdzv_hash_of(const void *name, size_t len);

/** rdzv_hash_check() - is @hash that of the name of @len bytes, so that the blob is kept under its
 * own name? Under another one it would be overwritten with that one's. 0, or -EINVAL with words. */
int rdzv_hash_check(const struct rdzv_hash *hash, const void *name, size_t len, struct err *e);

/** rdzv_key_of_blob() - the key of a blob's first piece; returns @buf. */
const char *rdzv_key_of_blob(char buf[static RDZV_KEY_MAX], enum rdzv_key_kind kind,
    const char *network, const char *job, const struct rdzv_hash *hash);

/** rdzv_key_of_piece() - the key of @piece of the blob whose first piece is at @first; returns
 * @buf. */
const char *rdzv_key_of_piece(
    char buf[static RDZV_KEY_MAX], const char *first, char slot, unsigned piece);

/**
 * rdzv_piece_encode() - a piece as a value of the store
 * @head:	of a first piece, before its bytes; NULL: it is another one
 * @len:	at most RDZV_CHUNK
 *
 * Return: gives it, free(); NULL: no memory.
 */
char *rdzv_piece_encode(const struct rdzv_head *head, const void *p, size_t len);

/**
 * rdzv_head_parse() - what the value of a first piece says before its bytes
 * @ret_at:	where the bytes begin in @text
 *
 * Return: 0 or -EINVAL with words.
 */
int rdzv_head_parse(struct rdzv_head *ret, size_t *ret_at, const char *text, struct err *e);

/**
 * rdzv_piece_decode() - the bytes of a value, at most RDZV_CHUNK
 * @ret:	set to what that of a first piece says before them; NULL: it is another one
 *
 * Return: 0 or -EINVAL with words.
 */
int rdzv_piece_decode(struct rdzv_head *ret, uint8_t buf[static RDZV_CHUNK], size_t *ret_len,
    const char *text, struct err *e);

/**
 * rdzv_members_next() - the first of the names in rdzv_job_record.members
 * @at:	borrowed
 * @ret:	set to it, and to "" when it is longer than a name
 *
 * Return: where the next one begins; NULL: there is none at @at.
 */
const char *rdzv_members_next(const char *at, char ret[static NAME_MAX_LEN + 1]);

/** rdzv_job_encode() - to text; owned by the caller, free(); NULL: no memory. */
char *rdzv_job_encode(const struct rdzv_job_record *job);

/** rdzv_job_decode() - from text. 0 or -EINVAL with words. */
int rdzv_job_decode(struct rdzv_job_record *ret, const char *text, struct err *e);
