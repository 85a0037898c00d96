import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Parser } from '@asyncapi/parser';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  CONTRACT_FOLDER,
  contractViolations,
  generatedContract,
  releasedSchemas,
  writeContract,
} from '../support/contract/files.ts';
import { jsonSchemas } from '../support/contract/jsonSchemas.ts';
import type { DataSchema } from '../support/contract/evolution.ts';
import { publicEventSchemas } from '../../shared/publicEvents/publicEvent.ts';

/** Of diagnostics; the rest are remarks. */
const ERROR = 0;

type Schemas = Record<string, DataSchema>;

const committed = (file: string): Promise<string> =>
  readFile(new URL(file, CONTRACT_FOLDER), 'utf8');

const changed = (change: (schemas: Schemas) => void, schemas: Schemas = jsonSchemas()): Schemas => {
  const copy = structuredClone(schemas);
  change(copy);
  return copy;
};

/** A field that every agent event gets from now on. */
const withColour = (schemas: Schemas): void => {
  for (const [name, schema] of Object.entries(schemas))
    if (name.startsWith('turnlog.agent.')) schema.properties!['colour'] = { type: 'string' };
};
const withoutSubject = (schemas: Schemas): void =>
  void delete schemas['headers']!.properties!['ce_subject'];

describe('the committed contract', () => {
  test.each(Object.entries(generatedContract()))(
    '%s is what the code publishes by (otherwise: npm run contract)',
    async (file, text) => {
      expect(await committed(file)).toBe(text);
    },
  );

  test('has no schema of a type that is published no longer', async () => {
    expect((await readdir(new URL('schemas/', CONTRACT_FOLDER))).toSorted()).toEqual(
      Object.keys(jsonSchemas())
        .map((name) => `${name}.json`)
        .toSorted(),
    );
  });

  test('takes nothing from the consumers of what was released', () => {
    const released = releasedSchemas();
    expect(Object.keys(released)).toContain('headers');
    expect(Object.keys(released).length).toBeGreaterThan(1);
    expect(contractViolations(released)).toEqual([]);
  });

  test('asyncapi.yaml is valid AsyncAPI 3.0 and describes every type on its topic', async () => {
    const { document, diagnostics } = await new Parser().parse(await committed('asyncapi.yaml'));
    const severities: Array<{ severity: number; message: string; path: Array<string | number> }> =
      diagnostics;
    expect(
      severities
        .filter(({ severity }) => severity === ERROR)
        .map(({ message, path }) => `${path.join('.')}: ${message}`),
    ).toEqual([]);
    expect(document?.version()).toBe('3.0.0');
    const byTopic = Object.fromEntries(
      document!
        .channels()
        .all()
        .map((channel) => [
          channel.address(),
          channel
            .messages()
            .all()
            .map((message) => message.id())
            .toSorted(),
        ]),
    );
    const of = (channel: string): string[] =>
      publicEventSchemas
        .filter((schema) => schema.channel === channel)
        .map(({ type }) => type)
        .toSorted();
    expect(byTopic).toEqual({
      'turnlog.agents.v1': of('agents'),
      'turnlog.sessions.v1': of('sessions'),
    });
  });
});

describe('each schema', () => {
  test.each(Object.entries(jsonSchemas()))('%s has a name that stays', (name, schema) => {
    expect(schema['$id']).toBe(
      name === 'headers' ? 'urn:turnlog:headers:v1' : `urn:turnlog:event:${name}`,
    );
  });

  test.each(Object.entries(jsonSchemas()))('%s stands alone', (_, schema) => {
    expect(() => new Ajv2020({ strict: true }).compile(schema)).not.toThrow();
  });

  test('names itself and every object in it, so that generators name their types', () => {
    const titles = Object.values(jsonSchemas()).flatMap((schema) => {
      const parts = [schema, ...Object.values(schema.$defs ?? {})];
      // An object that is not in $defs has no name.
      const unnamed = parts
        .flatMap(({ properties = {} }) => Object.values(properties))
        .filter(({ properties, items }) => properties ?? items?.properties);
      expect(unnamed).toEqual([]);
      expect(Object.keys(schema.$defs ?? {})).toEqual(parts.slice(1).map(({ title }) => title));
      return parts.map(({ title }) => String(title));
    });
    expect(new Set(titles)).toEqual(
      new Set([
        ...Object.values(jsonSchemas()).map(({ title }) => title),
        'AgentParameters',
        'AnswerSchema',
        'FallbackModel',
        'ForkedFrom',
        'Label',
        'ModelCall',
        'ResponseFormat',
        'Tokens',
      ]),
    );
    expect(titles).toContain('SessionTurnCompletedV1');
  });

  test('has a name of its own', () => {
    const titles = Object.values(jsonSchemas()).map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
  });
});

/** Each place of a schema that says which values fit. */
const parts = (schema: DataSchema): DataSchema[] => [
  schema,
  ...[
    ...Object.values(schema.properties ?? {}),
    ...Object.values(schema.$defs ?? {}),
    ...(schema.items ? [schema.items] : []),
  ].flatMap(parts),
];

/** Every way to break a released schema by one change, with what is changed. */
function breaks(name: string): { what: string; schemas: Schemas }[] {
  const broken: { what: string; schemas: Schemas }[] = [];
  const released = releasedSchemas();
  const change = (index: number, what: string, apply: (part: DataSchema) => void): void => {
    const schemas = changed((all) => apply(parts(all[name]!)[index]!), released);
    broken.push({ what: `part ${index} ${what}`, schemas });
  };
  for (const [index, part] of parts(released[name]!).entries()) {
    for (const field of Object.keys(part.properties ?? {})) {
      change(index, `loses ${field}`, ({ properties }) => void delete properties![field]);
      if (part.required?.includes(field))
        change(index, `no longer requires ${field}`, (now) => {
          now.required = now.required!.filter((other) => other !== field);
        });
    }
    if (part['$ref'] !== undefined) {
      change(index, 'is a text', (now) => {
        delete now['$ref'];
        now['type'] = 'string';
      });
      continue;
    }
    if (part.items) change(index, 'has any items', (now) => void delete now.items);
    change(index, 'is nothing', (now) => void (now['type'] = 'null'));
    change(index, 'is a number, too', (now) => void (now['type'] = [part['type'], 'number']));
    change(index, 'is narrower', (now) => void (now['enum'] = ['only this']));
    for (const keyword of ['pattern', 'minimum', 'const'])
      if (keyword in part) change(index, `loses its ${keyword}`, (now) => void delete now[keyword]);
  }
  return broken;
}

describe('the rule by which the contract grows', () => {
  test.each(Object.keys(releasedSchemas()))('%s can not be broken by any change', (name) => {
    const tried = breaks(name);
    expect(tried.length).toBeGreaterThan(10);
    const missed = tried.filter(
      ({ schemas }) => contractViolations(releasedSchemas(), schemas).length === 0,
    );
    expect(missed.map(({ what }) => what)).toEqual([]);
  });

  test.each(Object.keys(releasedSchemas()))('%s can not go', (name) => {
    const present = changed((schemas) => void delete schemas[name]);
    expect(contractViolations(releasedSchemas(), present)).toEqual([`${name} is gone`]);
  });

  test('a header that is removed, and one that may be missing, are named', () => {
    const present = changed(({ headers }) => {
      delete headers!.properties!['ce_accountid'];
      headers!.required = headers!.required!.filter((name) => name !== 'ce_position');
    });
    expect(contractViolations(releasedSchemas(), present)).toEqual([
      'headers: /ce_accountid is gone',
      'headers: /ce_position may be missing now',
    ]);
  });

  test('a header, a field and a type that are new are welcome, and so are other names and remarks', () => {
    const present = changed((schemas) => {
      schemas['headers']!.properties!['ce_another'] = { type: 'string' };
      withColour(schemas);
      schemas['turnlog.agent.renamed.v1'] = { type: 'object' };
      const completed = schemas['turnlog.session.turn_completed.v1']!;
      completed.title = 'Answered';
      completed.$defs!['Tokens']!['description'] = 'Better said';
      completed.$defs!['Tokens']!.properties!['cached'] = { type: 'integer' };
    });
    expect(contractViolations(releasedSchemas(), present)).toEqual([]);
  });
});

describe('npm run contract', () => {
  let folder: string;
  let url: URL;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'turnlog-contract-'));
    url = pathToFileURL(`${folder}/`);
    expect(writeContract(url, { release: true })).toEqual([]);
  });
  afterEach(() => rm(folder, { recursive: true }));

  const present = async (name: string): Promise<DataSchema> =>
    JSON.parse(await readFile(new URL(`schemas/${name}.json`, url), 'utf8')) as DataSchema;

  test('writes what grew, and leaves what was released until it is told to release', async () => {
    const schemas = changed(withColour);
    expect(writeContract(url, { release: false, schemas })).toEqual([]);
    expect((await present('turnlog.agent.created.v1')).properties).toHaveProperty('colour');
    expect(releasedSchemas(url)).toEqual(jsonSchemas());
    // What was not released may still go.
    expect(writeContract(url, { release: false })).toEqual([]);
    expect(writeContract(url, { release: true, schemas })).toEqual([]);
    expect(releasedSchemas(url)).toEqual(schemas);
    expect(writeContract(url, { release: false })).toEqual(
      ['created', 'deleted', 'erased', 'updated'].map(
        (what) => `turnlog.agent.${what}.v1: /colour is gone`,
      ),
    );
  });

  test.each([false, true])(
    'writes nothing where a consumer would lose something (release: %s)',
    async (release) => {
      const schemas = changed((all) => {
        withColour(all);
        withoutSubject(all);
      });
      expect(writeContract(url, { release, schemas })).toEqual(['headers: /ce_subject is gone']);
      expect((await present('turnlog.agent.created.v1')).properties).not.toHaveProperty('colour');
      expect(releasedSchemas(url)).toEqual(jsonSchemas());
    },
  );

  test('removes the schema of a type that was never released', async () => {
    const schemas = changed((all) => void (all['turnlog.agent.renamed.v1'] = { type: 'object' }));
    writeContract(url, { release: false, schemas });
    expect(await readdir(new URL('schemas/', url))).toContain('turnlog.agent.renamed.v1.json');
    writeContract(url, { release: false });
    expect(await readdir(new URL('schemas/', url))).not.toContain('turnlog.agent.renamed.v1.json');
  });
});
