/* remote.c - see remote.h. */
#include "remote.h"

#include "base/secret.h"

void noise_remote_init(struct noise_remote *remote, const struct noise_profile *profile,
    const struct noise_local *local, const struct x25519_public *public)
{
    *remote = (struct noise_remote){.profile = profile, .public = *public};
    noise_remote_set_local(remote, local);
}

void noise_remote_deinit(struct noise_remote *remote)
{
    secret_wipe(remote, sizeof(*remote));
}

void noise_remote_set_psk(struct noise_remote *remote, const struct noise_psk *psk)
{
    remote->psk = *psk;
}

void noise_remote_set_local(struct noise_remote *remote, const struct noise_local *local)
{
    remote->has_static_static =
        local->has_key && x25519_dh(&local->secret, &remote->public, &remote->static_static);
    if (!remote->has_static_static)
        secret_wipe(&remote->static_static, sizeof(remote->static_static));
}
