import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const load = createRequire(import.meta.url);

/** The methods that the index adds to every dispatcher. */
type OfIndex = 'connect' | 'pipeline' | 'request' | 'stream' | 'upgrade';
type Alone<Class extends new (...args: never) => Undici.Dispatcher> = new (
  ...args: ConstructorParameters<Class>
) => Omit<InstanceType<Class>, OfIndex>;

/**
 * undici's clients alone: its index also loads `fetch`, WebSocket, caches and mocks, which take 3 MB
 * and 40 ms of a start.
 */
export const Agent = load('undici/lib/dispatcher/agent.js') as Alone<typeof Undici.Agent>;
export const Client = load('undici/lib/dispatcher/client.js') as Alone<typeof Undici.Client>;
export const buildConnector = load('undici/lib/core/connect.js') as typeof Undici.buildConnector;

/** Sends a request through its `this`, which has no method `request` unless the index is loaded. */
export const requestThrough = load('undici/lib/api/api-request.js') as Undici.Dispatcher['request'];
