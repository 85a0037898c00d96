import type { Static } from 'typebox';
import { Type } from '../../shared/domain/jsonSchema.ts';
import { LIMITS } from '../../shared/limits.ts';
import { lazyValidator, type ProblemMessages } from '../../shared/lib/validation/validation.ts';
import {
  readJsonFile,
  requireNoProblems,
  schemaProblems,
  type Problems,
} from '../lib/optionFile.ts';

const strict = { additionalProperties: false };
const Texts = Type.Record(Type.String(), Type.String());
/** Maps names to variables of our own environment, whose values are passed on. */
const Variables = Type.Record(Type.String(), Type.String({ minLength: 1 }));

const common = {
  tools: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })),
  call_timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 600_000 })),
};
const ProcessServer = Type.Object(
  {
    command: Type.String({ minLength: 1 }),
    args: Type.Optional(Type.Array(Type.String())),
    env: Type.Optional(Texts),
    env_from: Type.Optional(Variables),
    cwd: Type.Optional(Type.String({ minLength: 1 })),
    ...common,
  },
  strict,
);
const HttpServer = Type.Object(
  {
    url: Type.String({ pattern: '^https?://[^\\s@]+$', 'x-url': true }),
    headers: Type.Optional(Texts),
    headers_from: Type.Optional(Variables),
    ...common,
  },
  strict,
);

const ToolsFile = Type.Object(
  {
    builtin: Type.Optional(
      Type.Array(Type.Enum(['calculator', 'clock', 'web_fetch']), { uniqueItems: true }),
    ),
    web_fetch: Type.Optional(Type.Object({ allow_private: Type.Optional(Type.Boolean()) }, strict)),
    mcp_servers: Type.Optional(
      Type.Record(Type.String(), Type.Object({}), { maxProperties: LIMITS.mcp.servers }),
    ),
  },
  strict,
);

type ProcessServer = Static<typeof ProcessServer>;
type HttpServer = Static<typeof HttpServer>;

/** The content of the file, whose servers have been checked. */
export type ToolsFile = Omit<Static<typeof ToolsFile>, 'mcp_servers'> & {
  mcp_servers?: Record<string, ProcessServer | HttpServer>;
};

const whole = lazyValidator(ToolsFile);
const processServer = lazyValidator(ProcessServer);
const httpServer = lazyValidator(HttpServer);

const SERVER_NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

const WORDS: ProblemMessages = {
  pattern: () => 'must be an http or https URL without credentials',
  enum: ({ allowedValues }) => `must be a built-in tool: ${(allowedValues as string[]).join(', ')}`,
};

/** Validates a server by its kind, so that the problems refer to that kind. */
function serverProblems(name: string, server: object): Problems {
  const at = `/mcp_servers/${name}`;
  if (!SERVER_NAME.test(name))
    return { [at]: 'must be named with small letters, digits and hyphens, 32 at the most' };
  if ('command' in server === 'url' in server)
    return { [at]: 'must have either a command or a url' };
  const validate = ('command' in server ? processServer : httpServer)();
  const problems = Object.entries(schemaProblems(validate, server, WORDS));
  return Object.fromEntries(problems.map(([path, message]) => [at + path, message]));
}

function variablesProblems(
  name: string,
  server: object,
  env: Readonly<Record<string, string | undefined>>,
): Problems {
  const { env_from = {}, headers_from = {} } = server as Partial<ProcessServer & HttpServer>;
  const missing = Object.entries({ env_from, headers_from }).flatMap(([field, names]) =>
    Object.entries(names ?? {})
      .filter(([, variable]) => typeof variable === 'string' && !env[variable])
      .map(([key, variable]) => [
        `/mcp_servers/${name}/${field}/${key}`,
        `names ${variable}, which is not set`,
      ]),
  );
  return Object.fromEntries(missing) as Problems;
}

/** The servers to check, even if other parts of the file are invalid. */
function serversIn(content: unknown): [string, object][] {
  const { mcp_servers } = (content ?? {}) as { mcp_servers?: unknown };
  if (typeof mcp_servers !== 'object' || mcp_servers === null) return [];
  return Object.entries(mcp_servers)
    .slice(0, LIMITS.mcp.servers)
    .filter(
      (entry): entry is [string, object] => typeof entry[1] === 'object' && entry[1] !== null,
    );
}

/**
 * Reads TOOLS_FILE and checks it. Throws `configuration_invalid`, which lists every problem with its
 * place in the file.
 */
export async function readToolsFile(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ToolsFile> {
  const source = { option: 'TOOLS_FILE', file };
  const content = await readJsonFile(source);
  const problems = schemaProblems(whole(), content, WORDS);
  for (const [name, server] of serversIn(content))
    Object.assign(problems, serverProblems(name, server), variablesProblems(name, server, env));
  requireNoProblems(source, problems);
  return content as ToolsFile;
}
