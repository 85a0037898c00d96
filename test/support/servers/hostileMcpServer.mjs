/**
 * An MCP server over standard input and output that does what the first argument says. It is a plain
 * script: what it sends is written by hand, since no library would send it.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [, , mode, file] = process.argv;
const { appendFileSync } = await import('node:fs');
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const answer = (id, result) => say({ jsonrpc: '2.0', id, result });
const text = (words, more = {}) => ({ content: [{ type: 'text', text: words }], ...more });
const object = (properties = {}) => ({ type: 'object', properties });

if (mode === 'never-starts') {
  process.stderr.write('no such database\n');
  process.exit(3);
}
if (mode === 'has-children') {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    stdio: 'inherit',
  });
  appendFileSync(file, `${process.pid} ${child.pid}\n`);
  process.on('SIGTERM', () => {});
}

const LISTS = {
  'hostile-schemas': () => [
    { name: 'fine', inputSchema: object({ a: { type: 'string' } }) },
    {
      name: 'draft7',
      inputSchema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        ...object({ a: { type: 'array', items: [{ type: 'number' }] } }),
      },
    },
    { name: 'async', inputSchema: { $async: true, ...object() } },
    { name: 'remote', inputSchema: object({ a: { $ref: 'http://127.0.0.1:1/schema.json' } }) },
    { name: 'slow', inputSchema: object({ a: { type: 'string', pattern: '^(a+)+$' } }) },
    {
      name: 'branching',
      inputSchema: {
        ...object({ a: { $ref: '#/$defs/b' } }),
        $defs: {
          b: {
            anyOf: Array.from({ length: 6 }, (_, index) => ({
              required: [`x${index}`, 'n'],
              properties: { n: { $ref: '#/$defs/b' } },
            })).concat(
              Array.from({ length: 6 }, () => ({
                type: 'object',
                required: ['n', 'no'],
                properties: { n: { $ref: '#/$defs/b' } },
              })),
            ),
          },
        },
      },
    },
    { name: 'large', inputSchema: object({ a: { description: 'x'.repeat(40_000) } }) },
    {
      name: 'deep',
      inputSchema: object({
        a: Array.from({ length: 60 }).reduce((inner) => object({ b: inner }), object()),
      }),
    },
    { name: 'bad pattern', inputSchema: object() },
    { name: 'unstorable', inputSchema: object({ a: { const: '\u0000' } }) },
    { name: 'invalid', inputSchema: object({ a: { type: 'string', pattern: '(' } }) },
    {
      name: 'proto',
      inputSchema: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
    },
  ],
  malformed: () => [
    { name: 'bad', inputSchema: 'no schema' },
    { name: 'act', inputSchema: object({ what: { type: 'string' } }) },
    { inputSchema: object() },
    null,
    { name: 'described', description: 5, inputSchema: object() },
    { name: 'odd', inputSchema: { type: 'array' } },
  ],
  many: () =>
    Array.from({ length: 300 }, (_, index) => ({ name: `t${index}`, inputSchema: object() })),
};
LISTS['slow-patterns'] = () => [
  { name: 'act', inputSchema: object({ a: { type: 'string', pattern: '^(a+)+$' } }) },
];
const DEFAULT_LIST = [{ name: 'act', inputSchema: object({ what: { type: 'string' } }) }];

const LOG = {
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', data: 'x' },
};

const ACTS = {
  die: () => process.exit(1),
  hang: () => undefined,
  huge: (id) => answer(id, text('x'.repeat(3_000_000))),
  flood: () => process.stdout.write('x'.repeat(20_000_000)),
  garbage: (id) => {
    process.stdout.write('this is no JSON\n{"jsonrpc":"2.0"}\n[]\n');
    answer(id, text('after the garbage'));
  },
  logs(id) {
    for (let line = 0; line < 5_000; line += 1) say(LOG);
    answer(id, text('after the logs'));
  },
  refuse: (id) => say({ jsonrpc: '2.0', id, error: { code: -32000, message: 'not today' } }),
  odd: (id) => answer(id, { content: 'no list' }),
  fail: (id) => answer(id, text('it failed', { isError: true })),
  environment: (id) => answer(id, text(JSON.stringify(process.env))),
  parts: (id) =>
    answer(id, {
      content: [
        { type: 'text', text: 'one' },
        { type: 'image', mimeType: 'image/png', data: 'AAAA' },
        { type: 'resource', resource: { uri: 'file:///a', text: 'two' } },
        { type: 'resource', resource: { uri: 'file:///b', blob: 'AAAA' } },
        { type: 'resource_link', uri: 'file:///c', name: 'c' },
      ],
    }),
  malformed: (id) =>
    answer(id, {
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 5 },
        { type: 'hologram', data: 'x' },
        null,
        { type: 'image', mimeType: 'image/png' },
        { type: 'text', text: 'two' },
      ],
    }),
  structure: (id) => answer(id, { content: [], structuredContent: { a: 1 } }),
};

/** Writes the same line again and again, as fast as it is read. */
function flood(line) {
  const chunk = `${line}\n`.repeat(500);
  const write = () => process.stdout.write(chunk, () => setImmediate(write));
  write();
}
const notice = (method, params) => JSON.stringify({ jsonrpc: '2.0', method, params });
const FLOODS = {
  'floods-changes': notice('notifications/tools/list_changed'),
  'floods-logs': notice('notifications/message', { level: 'info', data: 'x'.repeat(10_000) }),
  'floods-garbage': 'this is no JSON',
};
/** As many values as a message may have, and as many bytes as a server may send. */
function sendUnsolicitedResults() {
  const content = Array(49_000).fill(1);
  setInterval(() => answer(1, { content }), 30);
}
function announceChange() {
  if (file) appendFileSync(file, 'changed\n');
  process.stdout.write(`${FLOODS['floods-changes']}\n`);
}
/** Schemas as large as they may be, others each time. */
const changingList = () =>
  Array.from({ length: 128 }, (_, tool) => ({
    name: `t${tool}`,
    inputSchema: object(
      Object.fromEntries(
        Array.from({ length: 100 }, (_property, at) => [
          `p${lists}_${at}`,
          { type: 'string', pattern: `^(a+)+${at}$` },
        ]),
      ),
    ),
  }));

/** A page that takes much more memory than it has bytes: it has as many values as it may. */
function valuesPage() {
  const keys = Array.from({ length: 24_000 }, (_, key) => `${lists}_${key}`.padEnd(31, 'q'));
  const inputSchema = { type: 'object', x: Object.fromEntries(keys.map((key) => [key, {}])) };
  return {
    tools: [{ name: `t${lists}`, inputSchema }, ...DEFAULT_LIST],
    ...(lists < 8 && { nextCursor: `${lists}` }),
  };
}

let lists = 0;
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize')
    return answer(id, {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'hostile', version: '1' },
    });
  if (method === 'notifications/cancelled' && file) return appendFileSync(file, 'cancelled\n');
  if (method === 'tools/list') {
    lists += 1;
    if (FLOODS[mode] && lists === 1) setImmediate(flood, FLOODS[mode]);
    if (mode === 'unsolicited' && lists === 1) sendUnsolicitedResults();
    if (mode === 'changing') {
      if (file) appendFileSync(file, 'listed\n');
      if (lists === 1) setInterval(announceChange, 2_000);
      return answer(id, { tools: changingList() });
    }
    if (mode === 'many-values') return answer(id, valuesPage());
    if (mode === 'endless-pages')
      return answer(id, { tools: DEFAULT_LIST, nextCursor: `${lists}` });
    if (mode === 'changes')
      return answer(id, {
        tools: [...DEFAULT_LIST, ...(lists > 1 ? [{ name: 'later', inputSchema: object() }] : [])],
      });
    return answer(id, { tools: (LISTS[mode] ?? (() => DEFAULT_LIST))() });
  }
  if (method !== 'tools/call') return undefined;
  if (file && mode !== 'has-children') appendFileSync(file, 'called\n');
  if (mode === 'changes') say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  const act = ACTS[params.arguments.what];
  return act ? act(id) : answer(id, text(`called ${params.name}`));
});
if (mode === 'has-children') process.stdin.on('end', () => {});
else process.stdin.on('end', () => process.exit(0));
