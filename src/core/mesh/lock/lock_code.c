/* lock_code.c - see lock_code.h. */
#include "mesh/lock/lock_code.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"

#define DIGIT_BITS 5
#define DIGITS     (LOCK_CODE_SIZE * 8 / DIGIT_BITS)
#define GROUP      4 /* digits */

static const char label[] = "weft lock recovery 1";
static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

_Static_assert(sizeof(alphabet) - 1 == 1 << DIGIT_BITS, "a letter for each digit");
_Static_assert(DIGITS + DIGITS / GROUP == LOCK_CODE_TEXT_MAX, "dashes between, and a zero");

void lock_code_make(struct lock_code *ret, const struct rng *rng)
{
    rng_fill(rng, ret->b, sizeof(ret->b));
}

/* Bit number @i, the highest one of the first byte being 0. */
static unsigned bit_at(const struct lock_code *code, unsigned i)
{
    return code->b[i / 8] >> (7 - i % 8) & 1u;
}

const char *lock_code_write(const struct lock_code *code, char buf[static LOCK_CODE_TEXT_MAX])
{
    char *p = buf;

    for (unsigned i = 0; i < DIGITS; i++) {
        unsigned digit = 0;

        for (unsigned k = 0; k < DIGIT_BITS; k++)
            digit = digit << 1 | bit_at(code, i * DIGIT_BITS + k);
        if (i > 0 && i % GROUP == 0)
            *p++ = '-';
        *p++ = alphabet[digit];
    }
    *p = '\0';
    return buf;
}

/* -1: it is none. */
static int digit_of(char c)
{
    const char *p;

    c = (char)toupper((unsigned char)c);
    c = c == 'O' ? '0' : c;
    c = c == 'I' || c == 'L' ? '1' : c;
    p = memchr(alphabet, c, sizeof(alphabet) - 1);
    return p ? (int)(p - alphabet) : -1;
}

int lock_code_parse(struct lock_code *ret, const char *text, struct err *e)
{
    struct lock_code code = {{0}};
    unsigned n = 0;
    int r = 0;

    for (; r == 0 && *text; text++) {
        int digit = digit_of(*text);

        if (*text == '-' || *text == ' ' || *text == '\n')
            continue;
        if (digit < 0 || n == DIGITS) {
            r = -EINVAL;
            break;
        }
        for (unsigned k = 0; k < DIGIT_BITS; k++) {
            unsigned i = n * DIGIT_BITS + k;

            code.b[i / 8] |=
                (uint8_t)(((unsigned)digit >> (DIGIT_BITS - 1 - k) & 1u) << (7 - i % 8));
        }
        n++;
    }
    if (r == 0 && n == DIGITS)
        *ret = code;
    else
        r = err_set(e, -EINVAL,
            "that is no code of recovery: it has %d letters and digits, and no U", (int)DIGITS);
    secret_wipe(&code, sizeof(code));
    return r;
}

void lock_code_secret(const struct lock_code *code, struct ed25519_secret *ret)
{
    uint8_t bytes[sizeof(label) - 1 + LOCK_CODE_SIZE];

    _Static_assert(SHA256_DIGEST_LENGTH == sizeof(ret->b), "a seed");
    memcpy(bytes, label, sizeof(label) - 1);
    memcpy(bytes + sizeof(label) - 1, code->b, sizeof(code->b));
    (void)SHA256(bytes, sizeof(bytes), ret->b);
    secret_wipe(bytes, sizeof(bytes));
}
