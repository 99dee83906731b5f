/*
 * boringssl.h - BoringSSL's libcrypto, loaded at run time where it is installed.
 *
 * It shares OpenSSL's symbol names, hence RTLD_LOCAL (its names stay out of
 * ours) and RTLD_DEEPBIND (ours stay out of its calls). A sanitizer's runtime
 * cannot live with RTLD_DEEPBIND; there the library is absent.
 */
#pragma once

#include <stdbool.h>

/**
 * boringssl_find() - the function @name of the library
 * @ret_fn:	a function pointer of the right type, set on success
 *
 * The library is loaded the first time, and stays for the life of the process.
 *
 * Threads: any.
 *
 * Return: false when the library or the function is not there.
 */
bool boringssl_find(const char *name, void *ret_fn);
