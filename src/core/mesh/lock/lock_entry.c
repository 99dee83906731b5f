/* lock_entry.c - see lock_entry.h. The bytes are in docs/wire/lock.md. */
#include "mesh/lock/lock_entry.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/err.h"

static const char entry_label[] = "weft lock entry 1";
static const char join_label[] = "weft lock join 1";

#define ENTRY_LABEL_LEN (sizeof(entry_label) - 1)
#define JOIN_LABEL_LEN  (sizeof(join_label) - 1)

_Static_assert(ENTRY_LABEL_LEN + 1 + NAME_MAX_LEN + 8 + sizeof(struct lock_hash) + 8 + 1 +
                       LOCK_BODY_MAX + 1 +
                       LOCK_SIGNATURES_MAX * (ED25519_SIZE + ED25519_SIGNATURE_SIZE) <=
                   LOCK_ENTRY_MAX,
    "the longest entry");

void lock_entry_deinit(struct lock_entry *entry)
{
    lock_body_deinit(&entry->body);
    *entry = (struct lock_entry)LOCK_ENTRY_NULL;
}

bool lock_hash_equal(const struct lock_hash *a, const struct lock_hash *b)
{
    return memcmp(a->b, b->b, sizeof(a->b)) == 0;
}

/* ---- bytes ---- */

static void write_name(struct writer *w, const char *name)
{
    writer_u8(w, (uint8_t)strlen(name));
    writer_put(w, name, strlen(name));
}

static void write_said(struct writer *w, const struct lock_entry *entry)
{
    writer_be64(w, entry->made_at);
    writer_u8(w, (uint8_t)entry->body.kind);
    lock_body_write(w, &entry->body);
}

/* Of which the hash is, and what operators sign. */
static void write_frame(struct writer *w, const struct lock_entry *entry)
{
    writer_put(w, entry_label, ENTRY_LABEL_LEN);
    write_name(w, entry->network);
    writer_be64(w, entry->seq);
    writer_put(w, entry->prev.b, sizeof(entry->prev.b));
    write_said(w, entry);
}

/* What is signed of an entry. */
static void write_signed(struct writer *w, const struct lock_entry *entry)
{
    if (entry->body.kind != LOCK_JOIN) {
        write_frame(w, entry);
        return;
    }
    writer_put(w, join_label, JOIN_LABEL_LEN);
    write_name(w, entry->network);
    write_said(w, entry);
}

void lock_entry_encode(struct writer *w, const struct lock_entry *entry)
{
    write_frame(w, entry);
    writer_u8(w, (uint8_t)entry->n_signatures);
    for (unsigned i = 0; i < entry->n_signatures; i++) {
        writer_put(w, entry->signatures[i].key.b, ED25519_SIZE);
        writer_put(w, entry->signatures[i].signature.b, ED25519_SIGNATURE_SIZE);
    }
}

/* What @write makes of the entry: gives the bytes, NULL: no memory. */
static uint8_t *make_bytes(void (*write)(struct writer *w, const struct lock_entry *entry),
    const struct lock_entry *entry, size_t *ret_len)
{
    uint8_t *bytes = malloc(LOCK_ENTRY_MAX);
    struct writer w = writer_make(bytes, bytes ? LOCK_ENTRY_MAX : 0);

    if (bytes)
        write(&w, entry);
    *ret_len = writer_len(&w);
    return bytes;
}

static int read_network(struct reader *in, struct lock_entry *entry, struct err *e)
{
    uint8_t len = reader_u8(in);
    const uint8_t *p = len <= NAME_MAX_LEN ? reader_take(in, len) : NULL;

    if (!p || memchr(p, '\0', len))
        return err_set(e, -EINVAL,
            "the network's name in the entry of a lock is cut off, or has more than %d bytes",
            NAME_MAX_LEN);
    memcpy(entry->network, p, len);
    entry->network[len] = '\0';
    return parse_name(entry->network, "network name", e);
}

static int read_head(struct reader *in, struct lock_entry *entry, struct err *e)
{
    const uint8_t *label = reader_take(in, ENTRY_LABEL_LEN);
    int r;

    if (!label || memcmp(label, entry_label, ENTRY_LABEL_LEN) != 0)
        return err_set(e, -EINVAL, "the entry of a lock does not begin with \"%s\"", entry_label);
    r = read_network(in, entry, e);
    if (r < 0)
        return r;
    entry->seq = reader_be64(in);
    reader_copy(in, entry->prev.b, sizeof(entry->prev.b));
    entry->made_at = reader_be64(in);
    if (in->failed || entry->made_at > LOCK_TIME_MAX)
        return err_set(e, -EINVAL, "entry %llu of a lock %s", (unsigned long long)entry->seq,
            in->failed ? "ends before it says anything" : "was made after the year 9999");
    return 0;
}

static int read_body(struct reader *in, struct lock_entry *entry, struct err *e)
{
    uint8_t kind = reader_u8(in);
    int r;

    if (kind < LOCK_GENESIS || kind >= LOCK_KIND_N)
        return err_set(e, -EINVAL, "entry %llu of a lock is of the kind %u; %d to %d are known",
            (unsigned long long)entry->seq, kind, LOCK_GENESIS, LOCK_KIND_N - 1);
    r = lock_body_read(&entry->body, (enum lock_kind)kind, in, entry->network, e);
    if (r < 0)
        (void)err_prefix(e, "entry %llu of a lock", (unsigned long long)entry->seq);
    return r;
}

static int read_signatures(struct reader *in, struct lock_entry *entry, struct err *e)
{
    unsigned long long seq = entry->seq;

    entry->n_signatures = reader_u8(in);
    if (in->failed || entry->n_signatures > LOCK_SIGNATURES_MAX)
        return err_set(e, -EINVAL,
            "entry %llu of a lock has more than %d signatures, or is cut off", seq,
            LOCK_SIGNATURES_MAX);
    for (unsigned i = 0; i < entry->n_signatures; i++) {
        struct lock_signature *s = &entry->signatures[i];

        reader_copy(in, s->key.b, sizeof(s->key.b));
        reader_copy(in, s->signature.b, sizeof(s->signature.b));
        if (i > 0 && ed25519_public_compare(&s[-1].key, &s->key) >= 0)
            return err_set(e, -EINVAL,
                "the signatures of entry %llu of a lock are not in the order of their keys, or one "
                "is there twice",
                seq);
    }
    if (in->failed)
        return err_set(e, -EINVAL, "entry %llu of a lock ends within its signatures", seq);
    return 0;
}

/* Is the entry written as lock_entry_encode() does? */
static int check_spelling(
    const struct lock_entry *entry, const uint8_t *p, size_t len, struct err *e)
{
    size_t again_len;
    uint8_t *again = make_bytes(lock_entry_encode, entry, &again_len);
    bool is_same = again && again_len == len && memcmp(again, p, len) == 0;

    if (!again)
        return err_set(e, -ENOMEM, "no memory for the entry of a lock");
    free(again);
    if (!is_same)
        return err_set(e, -EINVAL, "entry %llu of a lock is not written in the one way there is",
            (unsigned long long)entry->seq);
    return 0;
}

int lock_entry_decode(struct lock_entry *ret, struct reader *in, struct err *e)
{
    struct lock_entry entry = LOCK_ENTRY_NULL;
    const uint8_t *start = in->p;
    int r = read_head(in, &entry, e);

    if (r == 0)
        r = read_body(in, &entry, e);
    if (r == 0)
        r = read_signatures(in, &entry, e);
    if (r == 0)
        r = check_spelling(&entry, start, (size_t)(in->p - start), e);
    if (r == 0)
        *ret = entry;
    else
        lock_entry_deinit(&entry);
    return r;
}

int lock_entry_hash(const struct lock_entry *entry, struct lock_hash *ret)
{
    size_t len;
    uint8_t *bytes = make_bytes(write_frame, entry, &len);

    if (!bytes)
        return -ENOMEM;
    (void)SHA256(bytes, len, ret->b);
    free(bytes);
    return 0;
}

/* ---- signatures ---- */

static int compare_key(const void *item, const void *wanted)
{
    return ed25519_public_compare(&((const struct lock_signature *)item)->key, wanted);
}

const struct lock_signature *lock_entry_signature(
    const struct lock_entry *entry, const struct ed25519_public *key)
{
    bool found;
    size_t at = sorted_place(entry->signatures, entry->n_signatures, sizeof(*entry->signatures),
        compare_key, key, &found);

    return found ? &entry->signatures[at] : NULL;
}

static int put_signature(
    struct lock_entry *entry, const struct lock_signature *signature, struct err *e)
{
    bool found;
    size_t at = sorted_place(entry->signatures, entry->n_signatures, sizeof(*entry->signatures),
        compare_key, &signature->key, &found);

    if (!found && entry->n_signatures == LOCK_SIGNATURES_MAX)
        return err_set(e, -EINVAL, "an entry of a lock has %d signatures, and no more are allowed",
            LOCK_SIGNATURES_MAX);
    if (!found) {
        memmove(&entry->signatures[at + 1], &entry->signatures[at],
            (entry->n_signatures - at) * sizeof(*entry->signatures));
        entry->n_signatures++;
    }
    entry->signatures[at] = *signature;
    return 0;
}

/* Would it be taken for an entry? */
static int check_entry(const struct lock_entry *entry, struct err *e)
{
    struct lock_entry again = LOCK_ENTRY_NULL;
    size_t len;
    uint8_t *bytes = make_bytes(lock_entry_encode, entry, &len);
    struct reader in = reader_make(bytes, len);
    int r = bytes ? lock_entry_decode(&again, &in, e)
                  : err_set(e, -ENOMEM, "no memory for the entry of a lock");

    lock_entry_deinit(&again);
    free(bytes);
    return r;
}

int lock_entry_sign(struct lock_entry *entry, const struct ed25519_secret *secret, struct err *e)
{
    struct lock_signature made;
    size_t len;
    uint8_t *bytes;
    bool ok;
    int r = check_entry(entry, e);

    if (r < 0)
        return r;
    bytes = make_bytes(write_signed, entry, &len);
    ok = bytes && ed25519_derive_public(secret, &made.key) &&
         ed25519_sign(&made.signature, secret, bytes, len);
    free(bytes);
    if (!ok)
        return err_set(e, -ENOMEM, "libcrypto cannot sign: no memory, or no Ed25519");
    return put_signature(entry, &made, e);
}

int lock_entry_verify(const struct lock_entry *entry, lock_verify_fn verify, struct err *e)
{
    char text[ED25519_BASE64_MAX];
    size_t len;
    uint8_t *bytes = make_bytes(write_signed, entry, &len);
    int r = bytes ? 0 : err_set(e, -ENOMEM, "no memory for the entry of a lock");

    for (unsigned i = 0; r == 0 && i < entry->n_signatures; i++) {
        const struct lock_signature *s = &entry->signatures[i];

        if (!verify(&s->signature, &s->key, bytes, len))
            r = err_set(e, -EINVAL, "the signature of the key %s is not good",
                ed25519_public_format(&s->key, text));
    }
    free(bytes);
    return r;
}
