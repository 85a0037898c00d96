/**
 * Where imports may point. Each rule says why, and names imports that it forbids, so that a test
 * can show it at work.
 */
/** From a file to a file, or to a library. */
export type Edge = readonly [from: string, to: string];

type Paths = string | string[];

/** A rule of dependency-cruiser. */
export interface Rule {
  name: string;
  comment: string;
  from: { path?: Paths; pathNot?: Paths };
  to: { path?: Paths; pathNot?: Paths; circular?: true; reachable?: boolean };
  /** Imports that break it, each of them. */
  examples: readonly Edge[];
  /** Imports that it takes beside them. */
  beside?: readonly Edge[];
}

const ours = '^(services|shared|infra|examples|test)/';
/**
 * Libraries, however they are resolved: `node:crypto` as `crypto`, a package by its folder or by
 * its name.
 */
const libraries = (names: readonly string[]): string =>
  `^(node:|node_modules/)?(${names.join('|')})(/|$)`;

/**
 * Vocabulary rather than technology: schemas, validation, logging and memory are used everywhere.
 */
const COMMON = ['typebox', 'ajv', 'pino', 'lru-cache'];

/** The folder that uses a library, so that it can be exchanged there; rarely a second one. */
const HOMES: Readonly<Record<string, string | readonly string[]>> = {
  '@eventstore/db-client': 'infra/eventstoredb',
  '@grpc/grpc-js': 'infra/eventstoredb',
  '@koa/cors': 'services/api',
  '@koa/router': 'services/api',
  '@modelcontextprotocol/client': 'infra/mcp',
  canonicalize: 'shared/eventlog',
  cloudevents: 'infra/kafka',
  commander: 'services/cli',
  'decimal.js': 'infra/tools',
  diff: 'infra/textdiff',
  'fraction.js': 'infra/tools',
  'gpt-tokenizer': 'infra/tokenizer',
  'html-to-text': 'infra/web',
  'ipaddr.js': 'infra/web',
  kafkajs: 'infra/kafka',
  koa: 'services/api',
  'koa-compress': 'services/api',
  openai: 'infra/openai',
  pg: 'infra/postgres',
  'pg-protocol': 'infra/postgres',
  'prom-client': 'infra/metrics',
  'rate-limiter-flexible': 'infra/ratelimit',
  // A build is locked as a data folder is, by a program that runs before any package is installed.
  sqlite: ['infra/sqlite', 'infra/vite'],
  standardwebhooks: 'infra/web',
  'typeid-js': 'infra/ids',
  // Requests to providers; and those to addresses that others name, which are checked.
  undici: ['infra/lib', 'infra/openai', 'infra/web'],
  uuidv7: 'infra/ids',
};
/** What the examples show to others is how to use these. */
const IN_EXAMPLES = new Set(['kafkajs', 'cloudevents']);

/** The libraries that have a rule. */
export const KNOWN_LIBRARIES = new Set([...COMMON, ...Object.keys(HOMES)]);

/** Files with one of these names, whichever feature they belong to. */
const named = (...names: string[]): string[] => names.map((name) => `^shared/.+/${name}\\.ts$`);

const inwards: Rule[] = [
  {
    name: 'events and deciders are pure',
    comment: 'They depend on commands and states alone: time and ids are arguments.',
    from: { path: named('events', 'decider') },
    to: { pathNot: [ours, libraries(['typebox'])], reachable: true },
    examples: [['shared/agents/decider.ts', 'node:crypto']],
  },
  {
    name: 'projections are pure',
    comment:
      'They depend on events and rows alone. They reach `crypto` by types of protected texts only.',
    from: { path: named('projection') },
    to: { pathNot: [ours, libraries(['typebox', 'crypto'])], reachable: true },
    examples: [['shared/sessions/turns/projection.ts', 'node:timers']],
  },
  {
    name: 'projections import no library',
    comment: 'Nothing in a row depends on chance or on time.',
    from: { path: named('projection') },
    to: { pathNot: [ours] },
    examples: [['shared/agents/projection.ts', 'node:crypto']],
  },
  {
    name: 'events and deciders use no port',
    comment:
      'A decision needs nothing but a command and a state, so it can be tested without fakes.',
    from: { path: named('events', 'decider') },
    to: { path: '^shared/(ports|lib|commandHandling|eventlog)/', reachable: true },
    examples: [['shared/agents/decider.ts', 'shared/ports/clock.ts']],
  },
  {
    name: 'shared imports only shared',
    comment: 'What the product means does not depend on how it is served or stored.',
    from: { path: '^shared/' },
    to: { path: ours, pathNot: '^shared/' },
    examples: [
      ['shared/agents/a.ts', 'services/process/start.ts'],
      ['shared/sessions/a.ts', 'infra/sqlite/eventStore/eventStore.ts'],
    ],
  },
  {
    name: 'shared does no input or output',
    comment: 'It reaches the outside by its ports, so these libraries are all that it needs.',
    from: { path: '^shared/' },
    to: {
      pathNot: [
        ours,
        libraries([
          ...COMMON,
          'canonicalize',
          'async_hooks',
          'crypto',
          'events',
          'perf_hooks',
          'timers',
          'v8',
        ]),
      ],
    },
    examples: [['shared/sessions/files.ts', 'node:fs']],
  },
  {
    name: 'infra imports only shared, infra/lib and its own technology',
    comment:
      'An adapter can be exchanged without a look at another one. The program that installs packages serves any folder.',
    from: { path: '^infra/([^/]+)/', pathNot: '^infra/local/' },
    to: {
      path: ours,
      pathNot: ['^shared/', '^infra/lib/', '^infra/$1/', '^infra/local/ensure-installed.mjs$'],
    },
    examples: [
      ['infra/postgres/reader.ts', 'infra/sqlite/reader.ts'],
      ['infra/postgres/server.ts', 'services/api/app.ts'],
    ],
  },
  {
    name: 'local servers use only the client of Kafka',
    comment: 'A local server is started with the same client as is used with others.',
    from: { path: '^infra/local/' },
    to: { path: ours, pathNot: ['^shared/', '^infra/(local|kafka)/'] },
    examples: [['infra/local/main.ts', 'infra/postgres/connection.ts']],
  },
  {
    name: 'only compose chooses adapters',
    comment: 'Which technology serves a port is decided in one folder.',
    from: { path: '^services/', pathNot: '^services/compose/' },
    to: { path: '^infra/' },
    examples: [['services/cli/accounts/keys.ts', 'infra/ids/typeIds.ts']],
  },
  {
    name: 'nothing that is shipped imports a test',
    comment: 'Tests are not part of what is installed.',
    from: { pathNot: '^test/' },
    to: { path: '^test/' },
    examples: [['examples/consumer.ts', 'test/support/freePort.ts']],
  },
];

/** The folders of services that each of them may depend on. */
const ARROWS: Readonly<Record<string, { on: readonly string[]; because: string }>> = {
  'main.ts': { on: ['compose', 'process'], because: 'The entry starts what compose has opened.' },
  cli: {
    on: ['compose', 'process'],
    because: 'Operator commands run over what compose opens, and fail like the server does.',
  },
  compose: {
    on: ['followers', 'process'],
    because: 'It gives every service its adapters; the API is served by the process.',
  },
  process: {
    on: ['api'],
    because: 'It serves the API, and knows of the other services only that they are parts.',
  },
  api: { on: [], because: 'It works with commands and queries, whoever starts it.' },
  followers: { on: [], because: 'Each follows the log in a thread or process of its own.' },
};

const arrowsOf = (folder: string): Rule => {
  const { on, because } = ARROWS[folder]!;
  const allowed = [folder, ...on].join('|');
  const forbidden = Object.keys(ARROWS).find((name) => ![folder, ...on, 'main.ts'].includes(name))!;
  const place = folder.endsWith('.ts') ? folder : `${folder}/a.ts`;
  return {
    name: `services/${folder} depends on ${on.join(', ') || 'no other service'}`,
    comment: because,
    from: { path: `^services/${folder}(/|$)` },
    to: { path: '^services/', pathNot: `^services/(${allowed})/` },
    examples: [[`services/${place}`, `services/${forbidden}/b.ts`]],
  };
};

const homeOf = (library: string): Rule => {
  const homes = [HOMES[library]!].flat();
  const places = [...homes, ...(IN_EXAMPLES.has(library) ? ['examples'] : []), 'test'];
  return {
    name: `${library} is used in ${homes.join(' and ')}`,
    comment: 'A library that is wrapped in one folder can be exchanged there.',
    from: { pathNot: `^(${places.join('|')})/` },
    to: { path: libraries([library]) },
    examples: [[`services/compose/with-${homes[0]!.replaceAll('/', '-')}.ts`, library]],
  };
};

const followersApart: Rule = {
  name: 'a follower does not depend on another one',
  comment: 'Each may run in a thread or process of its own.',
  from: { path: '^services/followers/([^/]+)/' },
  to: { path: '^services/followers/[^/]+/', pathNot: '^services/followers/$1/' },
  examples: [['services/followers/relay/a.ts', 'services/followers/prover/b.ts']],
};

const noCycles: Rule = {
  name: 'no cycles',
  comment: 'Files that need each other are one file, or want a third one.',
  from: {},
  to: { circular: true },
  examples: [['shared/sessions/one.ts', 'shared/sessions/two.ts']],
  beside: [['shared/sessions/two.ts', 'shared/sessions/one.ts']],
};

/** What is started by name: by npm, Docker or a person. */
const ENTRY_POINTS = [
  'services/main.ts',
  'services/cli/main.ts',
  'infra/local/ensure-installed.mjs',
  'infra/local/kafka/main.ts',
  'infra/deploy/fillCompileCache.ts',
  'infra/deploy/healthCheck.ts',
  'infra/vite/build.ts',
];

/** Everything is reached from an entry point, or from a worker, whose file no import names. */
export function everythingIsUsed(workers: readonly string[]): Rule {
  const begun = `^(${[...ENTRY_POINTS, ...workers].join('|')})$`;
  return {
    name: 'everything is used',
    comment: 'What nothing that is shipped uses is deleted, also when a test still calls it.',
    from: { path: begun },
    to: { path: '^(services|shared|infra)/', pathNot: begun, reachable: false },
    examples: [['services/process/unused.ts', 'services/process/used.ts']],
    beside: [['services/main.ts', 'services/process/used.ts']],
  };
}

/** All rules but that everything is used. */
export const RULES: readonly Rule[] = [
  ...inwards,
  ...Object.keys(ARROWS).map(arrowsOf),
  ...Object.keys(HOMES).map(homeOf),
  followersApart,
  noCycles,
];
