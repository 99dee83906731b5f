/*
 * device_engine.h - an engine (engine/engine.h) whose data path is a device in this process.
 *
 * The hub's networks share one UDP port and the relay behind it, so their devices run in the hub
 * itself. They are changed by the same requests as the process `weft wg`, without the socket.
 * It has those functions of struct engine_ops that change peers and tell of them, and no others.
 */
#pragma once

struct device;
struct engine;

/**
 * device_engine_new() - an engine that changes @device
 * @device:	pinned
 *
 * Threads: any, one at a time; never with the port's locks held.
 *
 * Return: 0, and an engine for engine_close(), which leaves the device; or -ENOMEM.
 */
int device_engine_new(struct engine **ret, struct device *device);
