/*
 * rdzv_record.h - what a rendezvous keeps in the hub's store: keys, and values to and from bytes.
 *
 *     rdzv/NET/JOB             the job: its port, how many runs it has had, if the last is over
 *     rdzv/NET/JOB/t/HASH      an entry of its TCPStore
 *     rdzv/NET/JOB/e/HASH      a node of its etcd tree
 *
 * HASH is the BLAKE2s of the entry's own key or path, in hex, because those may hold any byte and
 * be longer than a key of the store. An entry is a run of bytes, its *blob*; what is too long for
 * one value of the store goes on under HASH/001, HASH/002 and so on, which the store lists in
 * order. Pure.
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

enum rdzv_key_kind {
    RDZV_KEY_NONE,  /* none of ours */
    RDZV_KEY_JOB,   /* rdzv/NET/JOB */
    RDZV_KEY_ENTRY, /* .../t/HASH */
    RDZV_KEY_NODE,  /* .../e/HASH */
    RDZV_KEY_N,
};

/** A key's parts. */
struct rdzv_key {
    enum rdzv_key_kind kind;
    char network[NAME_MAX_LEN + 1];
    char job[NAME_MAX_LEN + 1];
    char hash[65];  /* "" for a job */
    unsigned chunk; /* 0: the first */
};

/** rdzv/NET/JOB */
struct rdzv_job_record {
    uint16_t port; /* where it is served */
    uint32_t run;  /* number of the current one, from 1 */
    bool ended;    /* it is over: who comes next begins another */
};

/** rdzv_key_parse() - kind RDZV_KEY_NONE when it is no key of ours. */
struct rdzv_key rdzv_key_parse(const char *key);

/** rdzv_key_of_job() - into @buf, which it returns. */
const char *rdzv_key_of_job(char buf[static RDZV_KEY_MAX], const char *network, const char *job);

/** rdzv_key_of_blob() - of what is called @name (@len bytes) in the job; returns @buf. */
const char *rdzv_key_of_blob(char buf[static RDZV_KEY_MAX], enum rdzv_key_kind kind,
    const char *network, const char *job, const void *name, size_t len);

/** rdzv_key_of_chunk() - @chunk of the blob whose first chunk is at @first; returns @buf. */
const char *rdzv_key_of_chunk(char buf[static RDZV_KEY_MAX], const char *first, unsigned chunk);

/** rdzv_chunks() - into how many values a blob of @len bytes goes; at least 1. */
unsigned rdzv_chunks(size_t len);

/** rdzv_chunk_encode() - @len bytes, at most RDZV_CHUNK, as a value; free(). NULL: no memory. */
char *rdzv_chunk_encode(const void *p, size_t len);

/** rdzv_chunk_decode() - add a value's bytes to @blob. 0, -EINVAL with words, or -ENOMEM. */
int rdzv_chunk_decode(struct str *blob, const char *text, struct err *e);

/** To text: owned by the caller, free(); NULL for no memory. From text: 0 or -EINVAL with words. */
char *rdzv_job_encode(const struct rdzv_job_record *job);
int rdzv_job_decode(struct rdzv_job_record *ret, const char *text, struct err *e);
