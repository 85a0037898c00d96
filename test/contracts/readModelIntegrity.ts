import { describe, expect, test } from '@jest/globals';
import type { KeyValues } from '../../shared/readModels/integrity/rowReader.ts';
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
      for (let page: KeyValues[]; ; keys.push(...page)) {
        page = await fresh.readModels.listKeys('turns', keys.at(-1), 2);
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

    test('have a size in UTF-8 bytes, of their texts and JSON', async () => {
      const stream = { stream: 'session-session_1' };
      await apply(
        record(stream, sessionStarted()),
        record(stream, turnStarted(1)),
        record({ stream: 'session-session_2' }, sessionStarted()),
        record({ stream: 'session-session_2' }, turnStarted(1, { input: 'ü'.repeat(1_000) })),
      );
      const bytesOf = async (id: number) =>
        fresh.readModels.rowBytes('turns', [`session_${id}`, 1]);
      const row = (await fresh.readModels.findRow('turns', ['session_1', 1]))!;
      const texts = Object.values(row).filter((value) => typeof value === 'string');
      const own = Buffer.byteLength(texts.join(''));
      expect(await bytesOf(1)).toBeGreaterThanOrEqual(own);
      expect(await bytesOf(1)).toBeLessThan(own + 200);
      expect((await bytesOf(2))! - (await bytesOf(1))!).toBeGreaterThan(1_900);
      expect(await fresh.readModels.rowBytes('turns', ['session_2', 2])).toBeUndefined();
    });
  });
}
