import { expect, test } from '@jest/globals';
import { patchAgent } from '../../../shared/agents/changeAgent.ts';
import { agentCreated } from '../../support/builders/events.ts';
import { isFreed } from '../../support/jest/garbage.ts';
import { handleContext, writeStream } from '../../support/stores/handleContext.ts';
import { sqliteEventStoreFixture } from '../../support/stores/sqlite/sqliteEventStore.ts';

const ACTOR = { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' };

test('a patch keeps no parsed schema of the agent while the merged one is checked', async () => {
  const fixture = await sqliteEventStoreFixture();
  try {
    const context = handleContext(fixture.store(), 0);
    const json_schema = { name: 'n', schema: '{"examples":[{},{}]}' };
    const parameters = { response_format: { type: 'json_schema' as const, json_schema } };
    await writeStream(context, ACTOR, 'agent-1', [agentCreated({ parameters })]);
    let merged: WeakRef<object>;
    const checked: [string, boolean][] = [];
    const flawOf = async (schema: string): Promise<undefined> =>
      void checked.push([schema, await isFreed(merged)]);
    const row = async () => ({ account_id: ACTOR.account_id });
    const readModels = { findAgent: row, untilShown: async () => true };
    const patching = patchAgent(
      { ...context, catalogue: { schemas: { flawOf } }, readModels } as never,
      ACTOR,
      { agent_id: '1' },
      {
        patch: { response_format: { json_schema: { schema: { title: 'T' } } } },
        checkFormat: (format) => {
          merged = new WeakRef(format as object);
          return format as never;
        },
      },
    );
    await patching;
    expect(checked).toEqual([['{"examples":[{},{}],"title":"T"}', true]]);
  } finally {
    await fixture.dispose();
  }
});
