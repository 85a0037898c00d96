import { fileURLToPath } from 'node:url';
import { createMcpGroup, type McpGroup } from '../../../infra/mcp/mcpToolGroup.ts';
import { createSchemaChecker } from '../../../infra/jsonschema/schemaChecker.ts';
import { createMcpThread } from '../../../infra/mcp/mcpThread.ts';
import type { McpServer, McpTransport } from '../../../infra/mcp/server.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { createMemoryLedger, type MemoryLedger } from '../../../shared/lib/memory/ledger.ts';

/** The script of the hostile server. */
export const HOSTILE = fileURLToPath(new URL('../servers/hostileMcpServer.mjs', import.meta.url));

/** As an operator names a server, with what differs from a plain one. */
export const serverWith = (transport: McpTransport, more: Partial<McpServer> = {}): McpServer => ({
  name: 'files',
  transport,
  tools: undefined,
  callMs: 10_000,
  ...more,
});

/** A script that is run by this Node.js. */
export const processOf = (...args: string[]): McpTransport => ({
  kind: 'process',
  command: process.execPath,
  args,
  env: { PATH: process.env['PATH']! },
  cwd: undefined,
});

/** The hostile server in one of its modes. */
export const hostileServer = (mode: string, file = ''): McpTransport =>
  processOf(HOSTILE, mode, file);

const open: McpGroup[] = [];
/** The thread of all groups. */
export const thread = createMcpThread();
let schemas: ReturnType<typeof createSchemaChecker> | undefined;

/** A group that `closeGroups` closes. Its warnings are passed to `onWarning`. */
export function openGroup(
  server: McpServer,
  onWarning?: (line: unknown) => void,
  memory: MemoryLedger = createMemoryLedger(),
): McpGroup {
  const logger = createLogger('silent');
  if (onWarning) logger.warn = onWarning;
  schemas ??= createSchemaChecker();
  const group = createMcpGroup(server, { logger, version: '1', thread, schemas, memory });
  open.push(group);
  return group;
}

export async function closeGroups(): Promise<void> {
  await Promise.all(open.splice(0).map((group) => group.close()));
  await schemas?.[Symbol.asyncDispose]();
  schemas = undefined;
}

/** Waits until it holds, for so long at the most. */
export async function until(holds: () => boolean, ms = 10_000): Promise<void> {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) throw new Error('it did not come to be in time');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
