/* identity.c - see identity.h. */
#include "noise/identity.h"

#include "base/secret.h"

void noise_local_set(struct noise_local *local, const struct x25519_secret *secret)
{
    struct x25519_secret clamped = *secret;

    secret_wipe(local, sizeof(*local));
    if (!x25519_secret_is_none(secret)) {
        x25519_secret_clamp(&clamped);
        local->has_key = x25519_derive_public(&clamped, &local->public);
        if (local->has_key)
            local->secret = clamped;
    }
    secret_wipe(&clamped, sizeof(clamped));
}

void noise_remote_init(struct noise_remote *remote, const struct noise_profile *profile,
    const struct noise_local *local, const struct x25519_public *public)
{
    *remote = (struct noise_remote){.profile = profile, .public = *public};
    noise_remote_set_local(remote, local);
}

void noise_remote_set_choice(struct noise_remote *remote, struct noise_choice choice)
{
    remote->profile = noise_profiles[choice.wanted];
    remote->takes_any = choice.takes_any;
}

struct noise_choice noise_remote_choice(const struct noise_remote *remote)
{
    return (struct noise_choice){remote->profile->transport, remote->takes_any};
}

void noise_remote_set_local(struct noise_remote *remote, const struct noise_local *local)
{
    remote->has_static_static =
        local->has_key && x25519_dh(&local->secret, &remote->public, &remote->static_static);
    if (!remote->has_static_static)
        secret_wipe(&remote->static_static, sizeof(remote->static_static));
}

void noise_remote_set_public(struct noise_remote *remote, const struct noise_local *local,
    const struct x25519_public *public)
{
    remote->public = *public;
    noise_remote_set_local(remote, local);
}

void noise_remote_under(struct noise_remote *ret, const struct noise_remote *remote,
    const struct noise_local *local, const struct x25519_public *public)
{
    *ret = *remote;
    noise_remote_set_public(ret, local, public);
}

void noise_remote_remember(struct noise_remote *remote, const struct noise_remote *used)
{
    remote->sent = used->sent;
    remote->received = used->received;
    remote->consumed_at = used->consumed_at;
    remote->has_consumed = used->has_consumed;
}
