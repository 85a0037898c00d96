import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { issueBootstrapKey } from '../../../../../services/process/startup/bootstrap.ts';
import type { CommandContext } from '../../../../../shared/commandHandling/context.ts';
import { hashApiKey } from '../../../../../shared/accounts/apiKey.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { accountStream } from '../../../../../shared/eventlog/streams.ts';
import type { Position, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { keyData } from '../../../../support/builders/events.ts';
import { positionOf, recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

const END = positionOf(2);

const FIRST_STREAM = accountStream('acct_00000000000000000000000000');
const KEY = 'chosen-by-the-operator_7Qx2mVw9RkZp4LbN';

/** What the replica that came first has recorded. */
function recordedBefore(): StoredEvent[] {
  const { record } = recordHistory();
  const opened = { type: 'account.opened.v1', data: { name: 'default' } };
  const issued = {
    type: 'account.key_issued.v1',
    data: keyData('key_of_the_first', { hash: hashApiKey(KEY) }),
  };
  return [opened, issued].map((event) => record({ stream: FIRST_STREAM }, event));
}

/**
 * A replica that finds no key in its read models yet, and the account open when it opens it itself.
 */
function lateReplica(untilShown: (position: Position) => Promise<boolean>): CommandContext {
  const context = {
    store: {
      keys: memoryKeys().keys,
      readStream: async () => recordedBefore(),
      append: () => Promise.reject(new Error('there is nothing to append')),
      // Longer than an estimate waits for it.
      head: () => sleep(200, END),
    },
    damaged: createDamagedStreams(() => undefined),
    readModels: {
      hasApiKeys: async () => false,
      listParkedStreams: async () => ({ count: 0, streams: [] }),
      findApiKeyByHash: async () => ({ hash: hashApiKey(KEY), revoked_at: null, expires_at: null }),
      untilShown,
    },
    clock: { now: () => 0 },
    ids: { uuid: () => 'id', typeId: (prefix: string) => `${prefix}_1` },
    visibilityWaitMs: 10,
  };
  return context as unknown as CommandContext;
}

test.each([
  ['with the same key', KEY],
  ['without one', undefined],
])(
  'a replica %s that came second waits until its read models show what the first one wrote, however late',
  async (_what, key) => {
    const waited: Position[] = [];
    const context = lateReplica(async (position) => waited.push(position) === 3);
    expect(await issueBootstrapKey(context, key, new AbortController().signal)).toBeUndefined();
    expect(waited).toEqual([END, END, END]);
  },
);

test('a first start has its key once the read models show it', async () => {
  const steps: string[] = [];
  const context = lateReplica(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    steps.push('shown');
    return true;
  });
  context.store = {
    ...context.store,
    readStream: async () => recordedBefore().slice(0, 1),
    append: async () => ({ revision: 1, position: END }),
  };
  expect(await issueBootstrapKey(context, KEY, new AbortController().signal)).toBe(KEY);
  expect([...steps, 'resolved']).toEqual(['shown', 'resolved']);
});

test('a replica that waits for them can be stopped', async () => {
  const stop = new AbortController();
  const context = lateReplica(async () => {
    stop.abort(new Error('stopped'));
    return false;
  });
  await expect(issueBootstrapKey(context, KEY, stop.signal)).rejects.toThrow('stopped');
});

test('a key that is easy to guess is not issued', async () => {
  const context = lateReplica(async () => true);
  const weak = issueBootstrapKey(context, 'a'.repeat(64), new AbortController().signal);
  await expect(weak).rejects.toMatchObject({ code: 'configuration_invalid' });
});

describe('a key that the operator sets after the first start', () => {
  const row = { key_id: 'key_1', hash: hashApiKey(KEY), expires_at: null, revoked_at: null };

  /** What a start warns of if a lookup of the key finds this. */
  async function warnedOf(
    findApiKeyByHash: () => Promise<object | undefined>,
    hasApiKeys = true,
  ): Promise<string> {
    const context = lateReplica(async () => true);
    const warned: unknown[] = [];
    Object.assign(context.readModels, { hasApiKeys: async () => hasApiKeys, findApiKeyByHash });
    Object.assign(context, { logger: { warn: (...given: unknown[]) => warned.push(given) } });
    const { signal } = new AbortController();
    expect(await issueBootstrapKey(context, KEY, signal)).toBeUndefined();
    return JSON.stringify(warned);
  }

  test.each([
    ['unknown', undefined],
    ['revoked', { ...row, revoked_at: '2026-01-01T00:00:00.000Z' }],
  ])('is warned of, without its value, if it is %s', async (_what, found) => {
    const warned = await warnedOf(async () => found);
    expect(warned).toContain('BOOTSTRAP_API_KEY is not a valid key of this log');
    expect(warned).not.toContain(KEY);
  });

  test('is warned of if another replica has issued another key meanwhile', async () => {
    expect(await warnedOf(async () => undefined, false)).toContain('BOOTSTRAP_API_KEY');
    expect(await warnedOf(async () => row, false)).toBe('[]');
  });

  test('is not warned of if it is a valid key', async () => {
    expect(await warnedOf(async () => row)).toBe('[]');
  });

  test('does not prevent the start if it can not be looked up', async () => {
    const damaged = new TurnlogError('stream_damaged', 'No.');
    expect(await warnedOf(() => Promise.reject(damaged))).toBe('[]');
  });
});

test.each(['invalid_request', 'event_invalid', 'configuration_invalid'] as const)(
  'a first start that fails with %s fails: nobody else came first',
  async (code) => {
    const context = lateReplica(async () => true);
    const refused = new TurnlogError(code, 'No.');
    context.store = {
      ...context.store,
      readStream: async () => [],
      append: () => Promise.reject(refused),
    };
    await expect(issueBootstrapKey(context, KEY, new AbortController().signal)).rejects.toBe(
      refused,
    );
  },
);

test('a first start that can not read the account yet which was just opened asks to be tried again', async () => {
  const context = lateReplica(async () => true);
  context.store = {
    ...context.store,
    readStream: async () => [],
    append: async () => ({ revision: 0, position: END }),
  };
  const signal = new AbortController().signal;
  await expect(issueBootstrapKey(context, KEY, signal)).rejects.toMatchObject({
    code: 'store_unavailable',
    retriable: true,
  });
});
