import { expect, test } from '@jest/globals';
import { createReadAudit } from '../../../../shared/audit/foldedReads.ts';
import { parseFoldedReads } from '../../../../shared/audit/foldedReadKinds.ts';
import type { HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { LIMITS } from '../../../../shared/limits.ts';

/** A store that refuses appends while `isAway`, and counts those that it takes. */
function auditLog() {
  const log = { isAway: false, appended: 0 };
  const store = {
    readStream: async () => [],
    append: async () => {
      await Promise.resolve();
      if (log.isAway) throw new Error('away');
      log.appended += 1;
      return { position: '1' };
    },
    keys: { issueKey: () => undefined },
  };
  const context = {
    store,
    damaged: createDamagedStreams(() => undefined),
    clock: { now: () => 0 },
    ids: { uuid: () => crypto.randomUUID() },
  } as unknown as HandleContext;
  return { log, context };
}

const actor = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };

test('a read is recorded once per key, kind, subject and hour', async () => {
  const { log, context } = auditLog();
  let now = 0;
  const audit = createReadAudit(parseFoldedReads('feed,requests'), () => now);
  const read = (kind: 'feed' | 'requests' | 'transcripts', subject = 's', key_id = 'key_1') =>
    audit.record(context, { ...actor, key_id }, kind, subject);
  await Promise.all([read('feed'), read('feed')]);
  expect(log.appended).toBe(1);
  await read('requests');
  await read('requests', 'another');
  await read('requests', 's', 'key_2');
  await read('transcripts');
  expect(log.appended).toBe(4);
  now = LIMITS.audit.foldMs - 1;
  await read('feed');
  expect(log.appended).toBe(4);
  now += 1;
  await read('feed');
  expect(log.appended).toBe(5);
});

test('a read that could not be recorded is refused, and recorded at the next try', async () => {
  const { log, context } = auditLog();
  const audit = createReadAudit(parseFoldedReads('feed'));
  log.isAway = true;
  const refused = await Promise.allSettled([
    audit.record(context, actor, 'feed', 's'),
    audit.record(context, actor, 'feed', 's'),
  ]);
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  log.isAway = false;
  await audit.record(context, actor, 'feed', 's');
  expect(log.appended).toBe(1);
});

test('the option names kinds, or none', () => {
  expect([...parseFoldedReads('requests,feed')]).toEqual(['feed', 'requests']);
  expect([...parseFoldedReads('none')]).toEqual([]);
});
