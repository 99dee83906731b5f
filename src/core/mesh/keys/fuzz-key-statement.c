/*
 * fuzz-key-statement.c - any bytes are a statement that is written again as it was, or none; its
 * text likewise; and no chain of what a stranger sends leads from a key to another one.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "mesh/keys/key_statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Of the key whose secret is in no corpus: whatever it is said to have signed is refused. */
static void check_chain(const struct key_statement *s)
{
    static const struct x25519_public trusted = {{0x9a, 0xf9, 0xb5, 0x68, 0x08, 0x66, 0x65, 0x77}};
    struct key_statement chain[2] = {*s, *s};
    struct key_subject subject = {.kind = s->kind, .network = s->network, .name = s->subject};
    struct x25519_public key = {{1}};

    chain[0].old_key = trusted;
    assert(key_chain_verify(&trusted, chain, 1, &subject, &key, NULL) < 0 ||
           x25519_public_equal(&s->old_key, &trusted));
    chain[1].serial++;
    assert(key_chain_verify(&s->old_key, chain + 1, 1, &subject, &key, NULL) < 0);
}

static void check_statement(const struct key_statement *s, const uint8_t *data, size_t len)
{
    uint8_t bytes[KEY_STATEMENT_MAX];
    char text[KEY_STATEMENT_TEXT_MAX];
    struct key_statement parsed;

    assert(key_statement_encode(s, bytes) == len);
    assert(memcmp(bytes, data, len) == 0);
    assert(key_statement_parse(&parsed, key_statement_format(s, text), NULL) == 0);
    assert(key_statement_equal(s, &parsed));
    if (s->kind != KEY_KIND_TLS)
        check_chain(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct key_statement s;
    char text[2 * KEY_STATEMENT_TEXT_MAX];
    char again[KEY_STATEMENT_TEXT_MAX];

    if (key_statement_decode(&s, data, len, NULL) == 0)
        check_statement(&s, data, len);
    if (len >= sizeof(text))
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    if (key_statement_parse(&s, text, NULL) == 0)
        assert(strcmp(key_statement_format(&s, again), text) == 0);
    return 0;
}
