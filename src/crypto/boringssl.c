/* boringssl.c - see boringssl.h. The library's handle is process-wide, written once. */
#include "crypto/boringssl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LOAD false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define CAN_LOAD false
#endif
#endif
#ifndef CAN_LOAD
#define CAN_LOAD true
#endif

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

    if (!CAN_LOAD)
        return false;
    (void)pthread_once(&loaded.once, load);
    p = loaded.library ? dlsym(loaded.library, name) : NULL;
    if (!p)
        return false;
    memcpy(ret_fn, &p, sizeof(p));
    return true;
}
