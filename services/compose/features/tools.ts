import type { McpGroup } from '../../../infra/mcp/group.ts';
import type { McpServer } from '../../../infra/mcp/server.ts';
import { createBuiltIns } from '../../../infra/tools/builtIns.ts';
import { createToolbox } from '../../../infra/tools/toolbox.ts';
import { readToolsFile, type ToolsFile } from '../../../infra/tools/toolsFile.ts';
import { createPageReader } from '../../../infra/web/pages.ts';
import type { Toolbox } from '../../../shared/ports/toolbox.ts';
import type { Opening } from '../opening.ts';
import { systemClock } from '../system.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** What a server's process is given of our own environment, in which there are secrets. */
const INHERITED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];
const CALL_MS = 30_000;

/** The values of the variables that are named. */
const valuesOf = (names: Readonly<Record<string, string>>, env: Variables) =>
  Object.fromEntries(Object.entries(names).map(([key, name]) => [key, env[name] ?? '']));

const inherited = (env: Variables): Record<string, string> =>
  Object.fromEntries(
    INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );

function serverOf(
  name: string,
  told: NonNullable<ToolsFile['mcp_servers']>[string],
  env: Variables,
): McpServer {
  const common = { name, tools: told.tools, callMs: told.call_timeout_ms ?? CALL_MS };
  if ('url' in told) {
    const { url, headers, headers_from = {} } = told;
    return {
      ...common,
      transport: { kind: 'http', url, headers: { ...headers, ...valuesOf(headers_from, env) } },
    };
  }
  const { command, args = [], cwd, env_from = {} } = told;
  const given = { ...inherited(env), ...told.env, ...valuesOf(env_from, env) };
  return { ...common, transport: { kind: 'process', command, args, env: given, cwd } };
}

/** Opens the tools of MCP servers. The client is loaded only where the tools file names a server. */
async function openMcpGroups(
  servers: NonNullable<ToolsFile['mcp_servers']>,
  { logger, opened }: Opening,
): Promise<McpGroup[]> {
  const named = Object.entries(servers);
  if (named.length === 0) return [];
  const { createMcpGroup } = await import('../../../infra/mcp/group.ts');
  const { env } = process;
  return named.map(([name, settings]) =>
    opened.adopt(createMcpGroup(serverOf(name, settings, env), { logger, version: '1' }), (group) =>
      group.close(),
    ),
  );
}

/**
 * Opens the tools on offer: the built-in ones, and those of MCP servers, which are started or called
 * in the background. Errors: `configuration_invalid` (the tools file).
 */
export async function openTools(opening: Opening): Promise<Toolbox> {
  const { TOOLS_FILE } = opening.config;
  const file = TOOLS_FILE ? await readToolsFile(TOOLS_FILE, process.env) : {};
  const groups = await openMcpGroups(file.mcp_servers ?? {}, opening);
  const allowPrivate = file.web_fetch?.allow_private ?? false;
  const builtIns = createBuiltIns({
    clock: systemClock,
    readPage: createPageReader({ allowPrivate }),
  }).filter(({ name }) => file.builtin?.some((wanted) => wanted === name) ?? true);
  return createToolbox(builtIns, groups);
}
