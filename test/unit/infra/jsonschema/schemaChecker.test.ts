import { afterAll, describe, expect, test } from '@jest/globals';
import { createSchemaChecker } from '../../../../infra/jsonschema/schemaChecker.ts';
import { LIMITS } from '../../../../shared/limits.ts';

const checker = createSchemaChecker();
afterAll(async () => {
  await checker[Symbol.asyncDispose]();
});

const flawOf = (schema: object) => checker.flawOf(JSON.stringify(schema), 'acct_1');
const misfitOf = (schema: object, text: string, account = 'acct_1') =>
  checker.misfitOf(JSON.stringify(schema), text, account);
const TOO_LONG = 'takes too long to check';

/** Each of its definitions asks twice for the next one. */
const bomb = (levels: number): object => ({
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    Array.from({ length: levels + 1 }, (_, level) => {
      const next = { $ref: `#/$defs/d${level + 1}` };
      return [`d${level}`, level === levels ? { type: 'object' } : { allOf: [next, next] }];
    }),
  ),
});

describe('the schema checker', () => {
  test.each<[object, string, string | undefined]>([
    [{ type: 'object' }, '{"a":1}', undefined],
    [{ type: 'object' }, ' {} ', undefined],
    [{ type: 'object' }, '[]', 'does not fit the schema (type)'],
    [{ type: 'object' }, '{} and more', 'is not JSON'],
    [{ type: 'object' }, '', 'is not JSON'],
    [{ const: null }, 'null', undefined],
    [{ properties: { constructor: { type: 'string' } } }, '{}', undefined],
    [{ required: ['toString'] }, '{}', 'does not fit the schema (required)'],
    [{ properties: { a: false } }, '{"a":1}', 'does not fit the schema (false schema)'],
    [
      { properties: { a: { $ref: '#' } }, required: ['a'] },
      '{"a":{}}',
      'does not fit the schema (required)',
    ],
    [{ type: 'string', format: 'email' }, '"nobody"', undefined],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }, '"a"', undefined],
  ])('of %j and %j says %j', async (schema, text, said) => {
    expect(await misfitOf(schema, text)).toBe(said);
  });

  test.each<[string, object]>([
    ['no schema', { type: 'integer?' }],
    ['a reference to nothing', { $ref: '#/$defs/none' }],
    ['a reference to elsewhere', { $ref: 'https://example.com/s' }],
    ['a pattern that is none', { pattern: '[' }],
  ])('finds the flaw of %s, and says no word of it', async (_, schema) => {
    expect(await flawOf(schema)).toBe(
      'is not a valid JSON Schema (2020-12), or refers to what it does not hold',
    );
  });

  test('names the member that ajv can’t check', async () => {
    const schema = JSON.parse('{"properties":{"a":{"properties":{"__proto__":{}}}}}') as object;
    expect(await flawOf(schema)).toBe('has a member named __proto__, which can’t be checked');
    expect(await flawOf({ properties: { proto: {} }, title: '__proto__' })).toBeUndefined();
  });

  test('refuses patterns whose compilation takes more memory than the thread may use', async () => {
    // Compiled, it would take 600 MB at the first text.
    const costly = { properties: { a: { pattern: '\\p{L}{3}'.repeat(3_000) } } };
    const reason = /^has patterns with over 500 classes/;
    expect(await flawOf(costly)).toMatch(reason);
    expect(await misfitOf(costly, JSON.stringify({ a: 'é'.repeat(10_000) }))).toMatch(reason);
    expect(await checker.toolFlawOf(JSON.stringify(costly), 'acct_1')).toMatch(reason);
    expect(await flawOf({ properties: { a: { pattern: '\\p{L}'.repeat(125) } } })).toBeUndefined();
  });

  test('finds no flaw in what can be used', async () => {
    expect(await flawOf({ type: 'object', properties: { a: { enum: [1, 2] } } })).toBeUndefined();
  });

  test.each<[string, object, string]>([
    ['a pattern', { pattern: '^(a+)+$' }, JSON.stringify(`${'a'.repeat(60)}!`)],
    ['references that double', bomb(60), '{}'],
    ['a reference without an end', { $ref: '#' }, '{}'],
    [
      'lists that are compared',
      { uniqueItems: true },
      JSON.stringify(Array.from({ length: 40_000 }, (_, n) => [n])),
    ],
  ])('is not held by %s, and works on', async (_, schema, text) => {
    const began = performance.now();
    expect(await misfitOf(schema, text)).toMatch(/takes too long|nested too deeply/);
    expect(performance.now() - began).toBeLessThan(5 * LIMITS.responseFormat.checkMs);
    expect(await misfitOf({ type: 'object' }, '{}')).toBeUndefined();
  });

  test('lets an account have its turn, however many checks of another wait', async () => {
    const slow = Array.from({ length: 3 }, (_, n) =>
      misfitOf({ ...bomb(60), title: `${n}` }, '{}', 'acct_hostile'),
    );
    let ended = 0;
    for (const check of slow) void check.then(() => (ended += 1));
    expect(await misfitOf({ type: 'object' }, '{}', 'acct_honest')).toBeUndefined();
    expect(ended).toBeLessThanOrEqual(2);
    expect(await Promise.all(slow)).toEqual(slow.map(() => TOO_LONG));
  }, 30_000);
});
