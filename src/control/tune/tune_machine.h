/*
 * tune_machine.h - reads the kernel's settings, and makes them what a plan says, or what they were.
 *
 * What was there before is on the disk before anything is changed, so that it is restored exactly
 * also after a crash.
 */
#pragma once

#include "tune/tune.h"

/** tune_gather() - the settings of this machine, and of its network cards; rates are left as they
 * are. */
void tune_gather(struct tune_facts *f);

/** tune_gather_device() - add what can be set of that network device. */
void tune_gather_device(struct tune_facts *f, const char *name);

/**
 * tune_apply() - change what is to be changed, now and, by @boot_file or tune_set_again(), at each
 *		  boot
 * @state_dir:	TUNE_SAVED is there
 * @boot_file:	TUNE_BOOT_FILE
 *
 * Return: 0; or negative errno with words, and all is as it was:
 * -EPERM	only root may do it
 * -EROFS	/proc/sys is mounted read-only
 * -EEXIST	there is a @boot_file of somebody else's
 * -ENOSPC	what is kept of before has other devices
 */
int tune_apply(const struct tune_plan *p, const struct tune_facts *f, const char *state_dir,
    const char *boot_file, struct err *e);

/**
 * tune_set_again() - after a boot: set what tune_apply() has set of network devices
 *
 * A device that is not there is passed over, and a ring that is longer stays so.
 *
 * Return: 0, also where nothing was set; or negative errno with words, and the rest is set.
 */
int tune_set_again(const char *state_dir, struct err *e);

/** tune_undo(): nothing has been changed here. */
#define TUNE_E_NOTHING 1

/**
 * tune_undo() - restore what was there before, and remove both files
 * @ret:	what was restored
 *
 * Return: 0; TUNE_E_NOTHING; or negative errno with words, and it may be tried again.
 */
int tune_undo(struct tune_saved *ret, const char *state_dir, const char *boot_file, struct err *e);
