import { expect, jest, test } from '@jest/globals';
import { prepareEvents } from '../../../../shared/commandHandling/prepareEvents.ts';
import { NO_STREAM } from '../../../../shared/eventlog/append.ts';
import type { ProtectedStore } from '../../../../shared/eventlog/encryption/protectedStore.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import type { EncodedEvent, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { withStorageLimits } from '../../../../shared/storage/limitedStore.ts';
import { agentCreated, EVERY_EVENT } from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';
import { handleContext } from '../../../support/stores/handleContext.ts';

const AUTHOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'r', causation_id: 'r' };

function setUp({ exceeded = false, full = false }) {
  const issueKey = jest.fn(() => ({ id: 'key', secret: 'secret' }));
  const append = jest.fn(async () => ({ revision: 0, position: '1' }));
  const refuse = async (): Promise<never> => {
    throw new TurnlogError('quota_exceeded', 'No.');
  };
  const admission = { appended: jest.fn(), failed: jest.fn() };
  const appended = jest.fn();
  const store = withStorageLimits({ append, keys: { issueKey } } as unknown as ProtectedStore, {
    quotas: {
      check: exceeded ? refuse : async () => undefined,
      admit: exceeded ? refuse : async () => admission,
    },
    disk: { isFull: () => full, appended },
  });
  return { store, append, issueKey, admission, appended };
}

/** The event as an append has it. */
function encoded(type: keyof typeof EVERY_EVENT): EncodedEvent[] {
  const { record } = recordHistory();
  const stored: StoredEvent = record({ stream: 'session-1' }, EVERY_EVENT[type]);
  return [stored];
}

test.each([{ exceeded: true }, { full: true }])(
  'a refused command makes no key for its texts: %p',
  async (state) => {
    const { store, issueKey } = setUp(state);
    const context = handleContext(store, 0);
    await expect(
      prepareEvents(context, AUTHOR, NO_STREAM, [agentCreated()]),
    ).rejects.toBeInstanceOf(TurnlogError);
    expect(issueKey).not.toHaveBeenCalled();
  },
);

test('a full disk refuses what clients begin, and records ends, audits and erasures', async () => {
  const { store, append, appended } = setUp({ full: true });
  await expect(
    store.append('session-1', 'no_stream', encoded('session.turn_started.v1')),
  ).rejects.toMatchObject({ code: 'storage_full', retriable: true, retryAfterSeconds: 30 });
  expect(append).not.toHaveBeenCalled();
  const others = ['session.turn_completed.v1', 'account.audited.v1', 'session.erased.v1'] as const;
  for (const type of others) await store.append('session-1', 0, encoded(type));
  expect(append).toHaveBeenCalledTimes(3);
  expect(appended).toHaveBeenCalledTimes(3);
});

test('an admitted append is released when it fails', async () => {
  const { store, append, admission } = setUp({});
  await store.append('session-1', 'no_stream', encoded('session.started.v1'));
  expect(admission.appended).toHaveBeenCalledWith('1');
  append.mockRejectedValueOnce(new Error('away'));
  await expect(
    store.append('session-1', 'no_stream', encoded('session.started.v1')),
  ).rejects.toThrow('away');
  expect(admission.failed).toHaveBeenCalledTimes(1);
});
