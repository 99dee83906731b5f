/*
 * kernel.h - the engine that is the kernel's own WireGuard.
 */
#pragma once

#include "engine/engine.h"

/**
 * engine_kernel_open() - the interface of that name, made if there is none
 *
 * Return: 0; ENGINE_E_UNSUPPORTED with words: this kernel cannot make one, or
 * an interface of that name is of another kind; or negative errno with words.
 */
int engine_kernel_open(struct engine **ret, const char *interface, struct err *e);

/** engine_kernel_check() - as engine_check(). */
int engine_kernel_check(const char *interface, struct err *e);
