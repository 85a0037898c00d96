import type { McpGroup } from '../../../infra/mcp/mcpToolGroup.ts';
import type { McpServer } from '../../../infra/mcp/server.ts';
import { createBuiltIns } from '../../../infra/tools/builtIns.ts';
import { createToolbox } from '../../../infra/tools/toolbox.ts';
import { readToolsFile, type ToolsFile } from '../../../infra/tools/toolsFile.ts';
import { createPageReader } from '../../../infra/web/pages.ts';
import type { ToolSchemaChecker } from '../../../shared/ports/schemaChecker.ts';
import type { Toolbox } from '../../../shared/ports/toolbox.ts';
import { observeTool, observeToolGroup } from './metrics.ts';
import type { Opening } from '../opening.ts';
import { systemClock } from '../system.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** The variables that an MCP server's process inherits; the others may hold secrets. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];
const CALL_MS = 30_000;

/** The values of the named variables. */
const resolveVariables = (names: Readonly<Record<string, string>>, env: Variables) =>
  Object.fromEntries(Object.entries(names).map(([key, name]) => [key, env[name] ?? '']));

const inheritedVariables = (env: Variables): Record<string, string> =>
  Object.fromEntries(
    INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );

function mcpServer(
  name: string,
  settings: NonNullable<ToolsFile['mcp_servers']>[string],
  env: Variables,
): McpServer {
  const common = { name, tools: settings.tools, callMs: settings.call_timeout_ms ?? CALL_MS };
  if ('url' in settings) {
    const { url, headers, headers_from = {} } = settings;
    return {
      ...common,
      transport: {
        kind: 'http',
        url,
        headers: { ...headers, ...resolveVariables(headers_from, env) },
      },
    };
  }
  const { command, args = [], cwd, env_from = {} } = settings;
  const environment = {
    ...inheritedVariables(env),
    ...settings.env,
    ...resolveVariables(env_from, env),
  };
  return { ...common, transport: { kind: 'process', command, args, env: environment, cwd } };
}

/** Opens the tools of MCP servers. The client is loaded only where the tools file names a server. */
async function openMcpGroups(
  servers: NonNullable<ToolsFile['mcp_servers']>,
  schemas: ToolSchemaChecker,
  { logger, memory, opened }: Opening,
): Promise<McpGroup[]> {
  const named = Object.entries(servers);
  if (named.length === 0) return [];
  const { createMcpGroup } = await import('../../../infra/mcp/mcpToolGroup.ts');
  const { createMcpThread } = await import('../../../infra/mcp/mcpThread.ts');
  const resources = { logger, version: '1', thread: createMcpThread(), schemas, memory };
  const { env } = process;
  const groups: McpGroup[] = [];
  // Concurrently, because each server may take seconds to stop.
  opened.defer(async () => void (await Promise.allSettled(groups.map((group) => group.close()))));
  for (const [name, settings] of named)
    groups.push(createMcpGroup(mcpServer(name, settings, env), resources));
  return groups;
}

/** Opens the built-in tools and those of MCP servers, which are started or called in the background. */
export async function openTools(opening: Opening, schemas: ToolSchemaChecker): Promise<Toolbox> {
  const { TOOLS_FILE } = opening.config;
  const file = TOOLS_FILE ? await readToolsFile(TOOLS_FILE, process.env) : {};
  const groups = await openMcpGroups(file.mcp_servers ?? {}, schemas, opening);
  const allowPrivate = file.web_fetch?.allow_private ?? false;
  const builtIns = createBuiltIns({
    clock: systemClock,
    readPage: createPageReader({ allowPrivate }),
  }).filter(({ name }) => file.builtin?.some((wanted) => wanted === name) ?? true);
  return createToolbox(
    builtIns.map((tool) => observeTool(tool, opening.metrics)),
    groups.map((group) => observeToolGroup(group, opening.metrics)),
  );
}
