import { afterEach, expect, test } from '@jest/globals';
import {
  closeGroups,
  hostileServer,
  openGroup,
  serverWith,
  until,
} from '../../../support/fakes/mcpGroups.ts';

afterEach(closeGroups);

const calling = { account_id: 'a', signal: new AbortController().signal };

test('a malformed tool is left out alone, and the log and health name it', async () => {
  const warnings: Record<string, unknown>[] = [];
  const group = openGroup(serverWith(hostileServer('malformed')), (line) =>
    warnings.push(line as Record<string, unknown>),
  );
  const tools = await group.known();
  expect(tools.map(({ name }) => name)).toEqual(['act']);
  await until(() => group.health().state === 'up');
  const problems = [
    '"bad" is not offered: its inputSchema is not valid',
    '"number 3" is not offered: its name is not valid',
    '"number 4" is not offered: it is not an object',
    '"described" is not offered: its description is not valid',
    '"odd" is not offered: its inputSchema is not valid',
  ];
  expect(group.health()).toEqual({ name: 'files', state: 'up', tools: 1, problems });
  expect(warnings).toEqual([
    expect.objectContaining({ server: 'files', count: 5, refused: problems.join('; ') }),
  ]);
});

test('a malformed item of an answer is replaced alone, and the log and health name its tool until it answers as it should', async () => {
  const warnings: unknown[] = [];
  const group = openGroup(serverWith(hostileServer('plain')), (line) => warnings.push(line));
  await group.known();
  await until(() => group.health().state === 'up');
  const invalid = '[content that is not valid]';
  for (let nth = 0; nth < 2; nth += 1)
    expect(await group.call('act', { what: 'malformed' }, calling)).toEqual({
      result: ['one', invalid, invalid, invalid, invalid, 'two'].join('\n'),
      is_error: false,
    });
  expect(group.health()).toMatchObject({
    state: 'up',
    problems: ['4 of the items in the last answer of "act" are not valid'],
  });
  expect(warnings).toEqual([{ server: 'files', tool: 'act', items: 4 }]);
  expect(await group.call('act', { what: '' }, calling)).toEqual({
    result: 'called act',
    is_error: false,
  });
  expect(group.health()).toEqual({ name: 'files', state: 'up', tools: 1 });
});
