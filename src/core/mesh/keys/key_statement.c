/* key_statement.c - see key_statement.h. */
#include "mesh/keys/key_statement.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"

static const char label[] = "weft key statement 1";

#define LABEL_LEN (sizeof(label) - 1)

_Static_assert(LABEL_LEN + 1 + 2 * (1 + NAME_MAX_LEN) + 2 * X25519_SIZE + 2 * 8 + 2 * XEDDSA_SIZE ==
                   KEY_STATEMENT_MAX,
    "the longest statement");
_Static_assert(BASE64_SIZE(KEY_STATEMENT_MAX) == KEY_STATEMENT_TEXT_MAX, "and its text");

/* ---- bytes ---- */

static void write_name(struct writer *w, const char *name)
{
    size_t len = strnlen(name, NAME_MAX_LEN);

    writer_u8(w, (uint8_t)len);
    writer_put(w, name, len);
}

/* What both keys sign. */
static void write_signed(struct writer *w, const struct key_statement *s)
{
    writer_put(w, label, LABEL_LEN);
    writer_u8(w, (uint8_t)s->kind);
    write_name(w, s->network);
    write_name(w, s->subject);
    writer_put(w, s->old_key.b, X25519_SIZE);
    if (s->kind == KEY_KIND_TLS)
        writer_put(w, s->pin.b, sizeof(s->pin.b));
    else
        writer_put(w, s->new_key.b, X25519_SIZE);
    writer_be64(w, s->serial);
    writer_be64(w, s->made_at);
}

size_t key_statement_encode(const struct key_statement *s, uint8_t buf[static KEY_STATEMENT_MAX])
{
    struct writer w = writer_make(buf, KEY_STATEMENT_MAX);

    write_signed(&w, s);
    writer_put(&w, s->by_old.b, XEDDSA_SIZE);
    if (s->kind != KEY_KIND_TLS)
        writer_put(&w, s->by_new.b, XEDDSA_SIZE);
    return writer_len(&w);
}

bool key_statement_equal(const struct key_statement *a, const struct key_statement *b)
{
    uint8_t x[KEY_STATEMENT_MAX];
    uint8_t y[KEY_STATEMENT_MAX];
    size_t len = key_statement_encode(a, x);

    return len == key_statement_encode(b, y) && memcmp(x, y, len) == 0;
}

static int read_name(struct reader *r, char *ret, const char *what, struct err *e)
{
    uint8_t len = reader_u8(r);
    const uint8_t *p = len <= NAME_MAX_LEN ? reader_take(r, len) : NULL;

    if (!p || memchr(p, '\0', len))
        return err_set(e, -EINVAL,
            "the %s's name in the statement of a key is cut off, or has "
            "more than %d bytes",
            what, NAME_MAX_LEN);
    memcpy(ret, p, len);
    ret[len] = '\0';
    return parse_name(ret, what, e);
}

static int check_keys(const struct key_statement *s, struct err *e)
{
    if (!x25519_public_can_be(&s->old_key) ||
        (s->kind != KEY_KIND_TLS && !x25519_public_can_be(&s->new_key)))
        return err_set(e, -EINVAL, "a key in the statement of a key is none that a secret has");
    if (s->kind != KEY_KIND_TLS && x25519_public_equal(&s->old_key, &s->new_key))
        return err_set(e, -EINVAL, "the statement of a key has the same key as old and as new");
    if (s->serial == 0)
        return err_set(e, -EINVAL, "the statement of a key has the serial 0; the first is 1");
    return 0;
}

static void read_keys(struct reader *r, struct key_statement *s)
{
    reader_copy(r, s->old_key.b, X25519_SIZE);
    if (s->kind == KEY_KIND_TLS)
        reader_copy(r, s->pin.b, sizeof(s->pin.b));
    else
        reader_copy(r, s->new_key.b, X25519_SIZE);
    s->serial = reader_be64(r);
    s->made_at = reader_be64(r);
    reader_copy(r, s->by_old.b, XEDDSA_SIZE);
    if (s->kind != KEY_KIND_TLS)
        reader_copy(r, s->by_new.b, XEDDSA_SIZE);
}

int key_statement_decode(struct key_statement *ret, const void *p, size_t len, struct err *e)
{
    struct key_statement s = {.serial = 0};
    struct reader in = reader_make(p, len);
    const uint8_t *head = reader_take(&in, LABEL_LEN);
    uint8_t kind = reader_u8(&in);
    int r;

    if (!head || memcmp(head, label, LABEL_LEN) != 0)
        return err_set(e, -EINVAL, "the statement of a key does not begin with \"%s\"", label);
    if (kind < KEY_KIND_NODE || kind > KEY_KIND_TLS)
        return err_set(e, -EINVAL, "the statement of a key is of the kind %u; %d to %d are known",
            kind, KEY_KIND_NODE, KEY_KIND_TLS);
    s.kind = (enum key_kind)kind;
    r = read_name(&in, s.network, "network", e);
    if (r >= 0)
        r = read_name(&in, s.subject, "node", e);
    if (r < 0)
        return r;
    read_keys(&in, &s);
    if (in.failed || reader_left(&in) > 0)
        return err_set(e, -EINVAL, "the statement of a key has %zu bytes, which is too %s", len,
            in.failed ? "few" : "many");
    r = check_keys(&s, e);
    if (r >= 0)
        *ret = s;
    return r;
}

const char *key_statement_format(
    const struct key_statement *s, char buf[static KEY_STATEMENT_TEXT_MAX])
{
    uint8_t bytes[KEY_STATEMENT_MAX];

    base64_encode(bytes, key_statement_encode(s, bytes), buf);
    return buf;
}

int key_statement_parse(struct key_statement *ret, const char *text, struct err *e)
{
    size_t n = strnlen(text, KEY_STATEMENT_TEXT_MAX);
    uint8_t bytes[KEY_STATEMENT_MAX + 2];
    size_t len = n / 4 * 3;

    if (n < 4 || n >= KEY_STATEMENT_TEXT_MAX)
        return err_set(e, -EINVAL, "the statement of a key has 4 to %d characters of base64",
            KEY_STATEMENT_TEXT_MAX - 1);
    if (text[n - 1] == '=')
        len -= text[n - 2] == '=' ? 2 : 1;
    if (!base64_decode(text, bytes, len))
        return err_set(e, -EINVAL, "the statement of a key is no base64: \"%.40s\"", text);
    return key_statement_decode(ret, bytes, len, e);
}

/* ---- signatures ---- */

static bool is_secret_of(const struct x25519_secret *secret, const struct x25519_public *public)
{
    struct x25519_public derived;

    return x25519_derive_public(secret, &derived) && x25519_public_equal(&derived, public);
}

int key_statement_sign(struct key_statement *s, const struct x25519_secret *old_secret,
    const struct x25519_secret *new_secret, const struct rng *rng, struct err *e)
{
    bool has_new = s->kind != KEY_KIND_TLS;
    struct xeddsa_signature by_old = {{0}};
    struct xeddsa_signature by_new = {{0}};
    uint8_t bytes[KEY_STATEMENT_MAX];
    struct writer w = writer_make(bytes, sizeof(bytes));

    if (!is_secret_of(old_secret, &s->old_key) ||
        (has_new && !is_secret_of(new_secret, &s->new_key)))
        return err_set(e, -EINVAL, "a secret is not that of the key which is to sign");
    write_signed(&w, s);
    if (!xeddsa_sign(&by_old, old_secret, bytes, writer_len(&w), rng) ||
        (has_new && !xeddsa_sign(&by_new, new_secret, bytes, writer_len(&w), rng)))
        return err_set(e, -ENOMEM, "libcrypto cannot sign: no memory, or no Ed25519");
    s->by_old = by_old;
    s->by_new = by_new;
    return 0;
}

int key_statement_verify(const struct key_statement *s, struct err *e)
{
    uint8_t bytes[KEY_STATEMENT_MAX];
    struct writer w = writer_make(bytes, sizeof(bytes));

    write_signed(&w, s);
    if (!xeddsa_verify(&s->by_old, &s->old_key, bytes, writer_len(&w)))
        return err_set(e, -EINVAL,
            "statement %llu of \"%s\" in \"%s\" is not signed by its old key",
            (unsigned long long)s->serial, s->subject, s->network);
    if (s->kind != KEY_KIND_TLS && !xeddsa_verify(&s->by_new, &s->new_key, bytes, writer_len(&w)))
        return err_set(e, -EINVAL,
            "statement %llu of \"%s\" in \"%s\" is not signed by its new key",
            (unsigned long long)s->serial, s->subject, s->network);
    return 0;
}

/* ---- chains ---- */

/* Does @s follow @before, which may be NULL, and is it about @subject? */
static int check_link(const struct key_statement *s, const struct key_statement *before,
    const struct key_subject *subject, struct err *e)
{
    if (s->kind != subject->kind || strcmp(s->network, subject->network) != 0 ||
        strcmp(s->subject, subject->name) != 0)
        return err_set(e, -EINVAL,
            "the statements of \"%s\" in \"%s\" hold one of \"%s\" in \"%s\"", subject->name,
            subject->network, s->subject, s->network);
    if (before && (!x25519_public_equal(&before->new_key, &s->old_key) ||
                      before->serial == UINT64_MAX || s->serial != before->serial + 1))
        return err_set(e, -EINVAL, "statement %llu of \"%s\" does not follow the one before it",
            (unsigned long long)s->serial, subject->name);
    return key_statement_verify(s, e);
}

/* The first link that @trusted signs; @n: none does. */
static size_t find_first(
    const struct x25519_public *trusted, const struct key_statement *chain, size_t n)
{
    size_t i = 0;

    while (i < n && !x25519_public_equal(&chain[i].old_key, trusted))
        i++;
    return i;
}

int key_chain_verify(const struct x25519_public *trusted, const struct key_statement *chain,
    size_t n, const struct key_subject *subject, struct x25519_public *ret, struct err *e)
{
    size_t first;
    int r = 0;

    if (n > KEY_CHAIN_MAX)
        return err_set(e, -EINVAL, "\"%s\" has %zu statements of its key; up to %d are taken",
            subject->name, n, KEY_CHAIN_MAX);
    first = find_first(trusted, chain, n);
    if (first == n && (n == 0 || !x25519_public_equal(&chain[n - 1].new_key, trusted)))
        return err_set(e, -EINVAL, "no statement leads from the known key of \"%s\" to another",
            subject->name);
    for (size_t i = first; r >= 0 && i < n; i++)
        r = check_link(&chain[i], i > first ? &chain[i - 1] : NULL, subject, e);
    if (r >= 0)
        *ret = first < n ? chain[n - 1].new_key : *trusted;
    return r;
}
