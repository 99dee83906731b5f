/*
 * disk_work.h - what waits for the disk, and is no affair of the store: key files, copies.
 *
 * It is done on a thread of the loop's pool, and ends on the loop.
 */
#pragma once

struct uv_loop_s;

/**
 * disk_work() - have @run called on another thread, and then @done on the loop
 * @arg:	pinned: for both
 *
 * Return: 0 or -ENOMEM.
 */
int disk_work(struct uv_loop_s *loop, void (*run)(void *arg), void (*done)(void *arg), void *arg);
