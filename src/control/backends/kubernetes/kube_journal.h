/*
 * kube_journal.h - what the Records of a store in Kubernetes hold: commits and states, to and from
 * JSON. Pure.
 *
 *     floor            where to begin: {"layout":1, "first":F, "next":N, "parts":P}
 *     entry-SEQ        commits in order: {"by":WRITER, "commits":[...]}; SEQ from 1 on, 16 digits.
 *                      One that is too long for a Record: {"by":WRITER, "parts":P}
 *     part-WRITER-I    such a one, in pieces: its text as above, cut
 *     state-SEQ-I      all that was kept before the entry SEQ, cut:
 *                      {"revision":R, "items":[[KEY, VALUE, REVISION, TTL], ...]}
 *
 * A commit is a list of operations, each a list: [KIND, KEY, EXPECT, VALUE, TTL, UNTOLD]; KIND is
 * "put", "delete" or "check", EXPECT is -1 for any revision.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/kubernetes/kube_client.h"

struct err;
struct store_item;
struct store_job;

/** The one layout there is. */
#define KUBE_LAYOUT 1

/** Most pieces of one text. */
#define KUBE_PARTS_MAX 4096

/** Room for a writer; see kube_writer(). */
#define KUBE_WRITER_MAX 64

/** An entry that is in parts is made no later than so many entries after the one that was the last
 * when its parts were begun. */
#define KUBE_PARTS_LAG 256

/** Where to begin, and what there is. */
struct kube_checkpoint {
    uint64_t first; /* the first entry that is kept */
    uint64_t next;  /* the first entry behind the state */
    uint64_t parts; /* pieces of that state; 0: nothing was kept before */
};

/** kube_entry_name() - "entry-0000000000000001". Returns @buf. */
const char *kube_entry_name(char buf[static KUBE_RECORD_NAME_MAX], uint64_t seq);

/** kube_entry_seq() - of such a name; 0: it is none. */
uint64_t kube_entry_seq(const char *name);

/**
 * kube_writer() - who writes an entry: "RUN-N-LAST"
 * @run:	a random number, of a run of a hub
 * @n:		which entry of that run it is
 * @last:	the last entry that was done when this one was begun
 *
 * Return: @buf.
 */
const char *kube_writer(char buf[static KUBE_WRITER_MAX], uint64_t run, uint64_t n, uint64_t last);

/**
 * kube_is_orphan() - does no entry that counts need the Record of that name, now and later?
 *
 * Such a Record is a piece of a state before the one that @f names, or of an entry which, if
 * somebody still made it, would lie before the checkpoint and so not count. A hub that died while
 * it wrote leaves such pieces. By this rule neither clocks nor who is alive matter.
 */
bool kube_is_orphan(const char *name, const struct kube_checkpoint *f);

/** kube_piece_name() - "part-WRITER-0", of an entry; or of the state before the entry @next, if
 * @writer is NULL: "state-SEQ-0". Returns @buf. */
const char *kube_piece_name(
    char buf[static KUBE_RECORD_NAME_MAX], const char *writer, uint64_t next, uint64_t index);

/** kube_checkpoint_encode() - free() it; NULL: no memory. */
char *kube_checkpoint_encode(const struct kube_checkpoint *f);

/** kube_checkpoint_decode() - 0, or -EINVAL with words. */
int kube_checkpoint_decode(struct kube_checkpoint *ret, const char *text, struct err *e);

/** kube_commit_encode() - the operations of a job; a new reference. NULL: a value is not UTF-8, or
 * no memory. */
json_t *kube_commit_encode(const struct store_job *job);

/**
 * kube_commit_decode() - a job from that
 * @ret:	gives it
 *
 * Return: 0; -EINVAL with words; -ENOMEM with words.
 */
int kube_commit_decode(struct store_job **ret, const json_t *json, struct err *e);

/** kube_item_decode() - @ret borrows from @json. 0, or -EINVAL with words. */
int kube_item_decode(struct store_item *ret, const json_t *json, struct err *e);

/**
 * kube_cut() - how many bytes of @text are one piece
 *
 * No more than KUBE_RECORD_MAX in JSON's form, and no character is cut. 0: @text is empty.
 */
size_t kube_cut(const char *text);
