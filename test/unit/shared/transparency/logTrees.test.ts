import { expect, test } from '@jest/globals';
import {
  isTreeReplacement,
  ownOrigin,
  readLogTrees,
} from '../../../../shared/transparency/logTrees.ts';
import {
  restoreAccepted,
  sessionStarted,
  treeDeclared,
  treeReplaced,
} from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';
import { fixedLog } from '../../../support/fakes/fixedLog.ts';
import { memoryReads } from '../../../support/fakes/memoryReads.ts';

function history() {
  const { record } = recordHistory();
  const first = record({ stream: 'session-session_1' }, sessionStarted());
  const own = `log-${first.id}`;
  return { first, append: (event: Parameters<typeof record>[1]) => record({ stream: own }, event) };
}

test('an empty log has no tree', async () => {
  expect(await readLogTrees(fixedLog([]))).toBeUndefined();
});

test('the tree of a log has the id of its first event until an operator declares another one', async () => {
  const { first, append } = history();
  const origin = `turnlog/${first.id}`;
  const declared = append(treeDeclared(origin, ['a']));
  const more = append(treeDeclared(origin, ['a', 'b']));
  expect(await readLogTrees(fixedLog([first, declared, more]))).toMatchObject({
    treeId: first.id,
    earlierIds: [],
    declared: new Map([[origin, { position: more.position, vkeys: ['a', 'b'] }]]),
  });
  const restored = append(restoreAccepted([first.id]));
  const replaced = append(treeReplaced());
  expect(await readLogTrees(fixedLog([first, declared, more, restored, replaced]))).toMatchObject({
    treeId: replaced.id,
    earlierIds: [first.id, restored.id],
    sameLeafIds: [restored.id],
  });
  expect(isTreeReplacement(replaced, first.id)).toBe(true);
  expect(isTreeReplacement(replaced, 'another')).toBe(false);
  expect(isTreeReplacement(restored, first.id)).toBe(false);
});

test('the own tree is the one under the name of the service, or else the one that was declared last', async () => {
  const { first, append } = history();
  const log = [
    first,
    ...['a', 'b', 'a'].map((name) => append(treeDeclared(`${name}/${first.id}`))),
  ];
  const ownOf = async (events: typeof log, name: string) =>
    ownOrigin((await readLogTrees(fixedLog(events)))!, name);
  expect(await ownOf(log, 'b')).toBe(`b/${first.id}`);
  expect(await ownOf(log, 'c')).toBe(`a/${first.id}`);
  expect(await ownOf(log.slice(0, 3), 'c')).toBe(`b/${first.id}`);
  const replaced = append(treeReplaced());
  expect(await ownOf([...log, replaced], 'b')).toBe(`b/${replaced.id}`);
});

test('declarations are read from a stream of any length', async () => {
  const { first, append } = history();
  const origin = `turnlog/${first.id}`;
  const log = [first];
  for (let count = 0; count < 1_050; count += 1) log.push(append(treeDeclared(origin, ['a'])));
  const replaced = append(treeReplaced([origin]));
  log.push(replaced);
  const { readStream } = memoryReads(log);
  expect(await readLogTrees({ firstEvent: async () => first, readStream })).toMatchObject({
    treeId: replaced.id,
    earlierIds: [first.id],
  });
});

test('a log that began with a declaration of a restore has one id', async () => {
  const { record } = recordHistory();
  const { id, ...first } = record({ stream: 'log-1' }, restoreAccepted(['log_0']));
  expect(await readLogTrees(fixedLog([{ ...first, id, stream: `log-${id}` }]))).toMatchObject({
    treeId: id,
    earlierIds: [],
  });
});

test('a declaration that was damaged is told, and is not taken for none', async () => {
  const { first, append } = history();
  const declared = append(treeDeclared());
  for (const data of ['{', '{"origin":"turnlog/log_0"}']) {
    const found = await readLogTrees(fixedLog([first, { ...declared, data }]));
    expect(found!.damage).toContain(`The event ${declared.id} (log-${first.id} revision 0)`);
    expect(found!.declared.size).toBe(0);
  }
});
