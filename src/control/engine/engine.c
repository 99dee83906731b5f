/* engine.c - see engine.h. */
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "mesh/config/diff.h"
#include "mesh/config/wg_config.h"

const char *const engine_kind_names[] = {"auto", "userspace", "kernel"};

_Static_assert(
    sizeof(engine_kind_names) / sizeof(*engine_kind_names) == ENGINE_KIND_N, "a name each");

int engine_kind_parse(enum engine_kind *ret, const char *text, struct err *e)
{
    for (unsigned i = 0; i < ENGINE_KIND_N; i++)
        if (strcmp(text, engine_kind_names[i]) == 0) {
            *ret = i;
            return 0;
        }
    return err_set(e, -EINVAL, "engine \"%.20s\" is none of auto, userspace, kernel", text);
}

int engine_open(struct engine **ret, enum engine_kind wanted, const char *interface,
    const char *timestamps, char why[static ENGINE_WHY_MAX], struct err *e)
{
    struct err unsupported = ERR_NULL;
    int r;

    why[0] = '\0';
    if (wanted == ENGINE_KIND_USERSPACE)
        return engine_userspace_open(ret, interface, timestamps, e);
    if (wanted == ENGINE_KIND_KERNEL)
        return engine_kernel_open(ret, interface, e);
    r = engine_kernel_open(ret, interface, &unsupported);
    if (r == 0) {
        (void)snprintf(why, ENGINE_WHY_MAX, "this kernel has WireGuard");
        return 0;
    }
    (void)snprintf(why, ENGINE_WHY_MAX, "%s", err_text(&unsupported));
    return engine_userspace_open(ret, interface, timestamps, e);
}

int engine_check(enum engine_kind wanted, const char *interface, struct err *e)
{
    struct err unsupported = ERR_NULL;

    if (wanted == ENGINE_KIND_USERSPACE)
        return engine_userspace_check(interface, e);
    if (wanted == ENGINE_KIND_KERNEL)
        return engine_kernel_check(interface, e);
    if (engine_kernel_check(interface, &unsupported) == 0)
        return 0;
    return engine_userspace_check(interface, e);
}

struct engine *engine_close(struct engine *engine)
{
    if (engine)
        engine->ops->close(engine);
    return NULL;
}

int engine_get(struct engine *engine, struct wg_config *ret, struct err *e)
{
    struct wg_config c = WG_CONFIG_NULL;
    int r = engine->ops->get(engine, &c, e);

    if (r != 0)
        return r;
    r = wg_config_sort(&c, e);
    if (r < 0) {
        wg_config_deinit(&c);
        return r;
    }
    *ret = c;
    return 0;
}

static int have_no_access(struct err *e)
{
    return err_set(e, ENGINE_E_UNSUPPORTED, "the kernel's WireGuard goes by no rules of its own");
}

int engine_set_access(struct engine *engine, const char *lines, uint64_t tag, struct err *e)
{
    return engine->ops->set_access ? engine->ops->set_access(engine, lines, tag, e)
                                   : have_no_access(e);
}

int engine_get_access(struct engine *engine, struct engine_access *ret, struct err *e)
{
    return engine->ops->get_access ? engine->ops->get_access(engine, ret, e) : have_no_access(e);
}

int engine_apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *secret, struct err *e)
{
    return diff_is_empty(d) ? 0 : engine->ops->apply(engine, d, secret, e);
}
