/* boringssl.c - see boringssl.h. The library's handle is process-wide, written once. */
#include "crypto/boringssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/sanitizer.h"

/* Where distributions put it: Debian's android-libboringssl, then a plain install. */
static const char *const libraries[] = {
    "/usr/lib/x86_64-linux-gnu/android/libcrypto.so.0",
    "/usr/lib/aarch64-linux-gnu/android/libcrypto.so.0",
    "/usr/lib/boringssl/libcrypto.so",
};

static struct {
    pthread_once_t once;
    void *library; /* NULL: none */
} loaded = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
    for (size_t i = 0; !loaded.library && i < sizeof(libraries) / sizeof(*libraries); i++)
        loaded.library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

bool boringssl_find(const char *name, void *ret_fn)
{
    void *p;

    if (HAS_SANITIZER)
        return false;
    (void)pthread_once(&loaded.once, load);
    p = loaded.library ? dlsym(loaded.library, name) : NULL;
    if (!p)
        return false;
    memcpy(ret_fn, &p, sizeof(p));
    return true;
}
