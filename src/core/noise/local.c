/* local.c - see local.h. */
#include "local.h"

#include "base/secret.h"

void noise_local_set(struct noise_local *local, const struct x25519_secret *secret)
{
    struct x25519_secret clamped = *secret;

    noise_local_deinit(local);
    if (!x25519_secret_is_none(secret)) {
        x25519_secret_clamp(&clamped);
        local->has_key = x25519_derive_public(&clamped, &local->public);
        if (local->has_key)
            local->secret = clamped;
    }
    secret_wipe(&clamped, sizeof(clamped));
}

void noise_local_deinit(struct noise_local *local)
{
    secret_wipe(local, sizeof(*local));
}
