/* choice.c - see choice.h. */
#include "choice.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* With two ciphers "any other" is the other one, so a list has at most two names. */
static_assert(AEAD_CIPHER_N == 2, "the text form names the one other cipher");

static enum aead_cipher other(enum aead_cipher cipher)
{
    return cipher == AEAD_CIPHER_CHACHA20POLY1305 ? AEAD_CIPHER_AES256GCM
                                                  : AEAD_CIPHER_CHACHA20POLY1305;
}

int noise_choice_parse(struct noise_choice *ret, const char *text, struct err *e)
{
    size_t len = strcspn(text, ",");
    enum aead_cipher wanted = aead_cipher_parse(text, len);
    bool takes_any = text[len] == ',';

    if (wanted == AEAD_CIPHER_N ||
        (takes_any && strcmp(text + len + 1, aead_cipher_name(other(wanted))) != 0))
        return err_set(e, -EINVAL,
            "cipher \"%.60s\" is not %s or %s, nor both, the wanted one first, with a comma", text,
            aead_cipher_name(AEAD_CIPHER_CHACHA20POLY1305),
            aead_cipher_name(AEAD_CIPHER_AES256GCM));
    *ret = (struct noise_choice){wanted, takes_any};
    return 0;
}

const char *noise_choice_format(struct noise_choice c, char buf[static NOISE_CHOICE_TEXT_MAX])
{
    (void)snprintf(buf, NOISE_CHOICE_TEXT_MAX, "%s%s%s", aead_cipher_name(c.wanted),
        c.takes_any ? "," : "", c.takes_any ? aead_cipher_name(other(c.wanted)) : "");
    return buf;
}
