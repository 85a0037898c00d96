import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { openTools } from '../../../../../services/compose/features/tools.ts';
import type { Opening } from '../../../../../services/compose/opening.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

test('MCP servers are closed at once, because each may take seconds', async () => {
  const file = join(await temporaryFolder(), 'tools.json');
  const server = { command: 'none' };
  await writeFile(file, JSON.stringify({ mcp_servers: { first: server, second: server } }));
  const closing: Array<() => void> = [];
  const close = (): Promise<void> => new Promise((resolve) => void closing.push(resolve));
  const createMcpGroup = ({ name }: { name: string }): object => ({ name, close });
  jest.unstable_mockModule('../../../../../infra/mcp/mcpToolGroup.ts', () => ({ createMcpGroup }));
  const opened = new AsyncDisposableStack();
  const opening = { config: { TOOLS_FILE: file }, opened } as unknown as Opening;
  await openTools(opening, {} as never);

  const closed = opened.disposeAsync();
  await new Promise<void>((resolve) => void setImmediate(resolve));
  expect(closing).toHaveLength(2);
  for (const done of closing) done();
  await closed;
});
