import { describe, expect, test } from '@jest/globals';
import { keyOf, type AnyRow, type KeyValues } from '../../shared/readModels/integrity/rowReader.ts';
import { agentCreated, sessionStarted, turnStarted } from '../support/builders/events.ts';
import { freshReadModels } from './freshReadModels.ts';
import type { ReadModelsFixture } from './readModels.ts';

/** The queries that compare rows with the log: a part of the suite of their port. */
export function integrityContract(name: string, open: () => Promise<ReadModelsFixture>): void {
  describe(`${name}: rows`, () => {
    const fresh = freshReadModels(open);
    const { apply, record } = fresh;

    test('of a table are listed after a key, in the order of the keys, and found by it', async () => {
      const stream = (id: number) => ({ stream: `session-session_${id}` });
      await apply(
        ...[3, 1, 2].flatMap((id) => [
          record(stream(id), sessionStarted()),
          record(stream(id), turnStarted(1)),
        ]),
        record({ stream: 'agent-agent_1' }, agentCreated()),
      );
      const keys: KeyValues[] = [];
      for (let page: AnyRow[]; ; keys.push(...page.map((row) => keyOf('turns', row)))) {
        page = await fresh.readModels.listRows('turns', keys.at(-1), 2);
        if (page.length === 0) break;
      }
      expect(keys).toEqual([1, 2, 3].map((id) => [`session_${id}`, 1]));
      const found = await fresh.readModels.findRow('turns', ['session_2', 1]);
      expect(found).toMatchObject({ session_id: 'session_2', turn: 1, status: 'running' });
      expect(await fresh.readModels.findRow('turns', ['session_2', 2])).toBeUndefined();
      expect(await fresh.readModels.findRow('agents', ['agent_1'])).toMatchObject({
        deleted: false,
      });
      expect(await fresh.readModels.currentGeneration()).toBeGreaterThan(0);
    });
  });
}
