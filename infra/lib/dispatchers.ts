import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const load = createRequire(import.meta.url);

/**
 * undici's clients alone: its index also loads `fetch`, WebSocket, caches and mocks, which take 3 MB
 * and 40 ms of a start.
 */
export const Agent = load('undici/lib/dispatcher/agent.js') as typeof Undici.Agent;
export const Client = load('undici/lib/dispatcher/client.js') as typeof Undici.Client;
export const buildConnector = load('undici/lib/core/connect.js') as typeof Undici.buildConnector;

/** Sends a request by its receiver, which has no method `request` unless the index is loaded. */
export const requestThrough = load('undici/lib/api/api-request.js') as Undici.Dispatcher['request'];
