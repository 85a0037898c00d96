import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadRegistry, type RegistryOptions } from '../../../infra/openai/registry.ts';
import type { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';

const offline = { id: 'offline', base_url: 'http://127.0.0.1:1/v1' };
const load = (options: Partial<RegistryOptions> = {}) =>
  loadRegistry({ env: {}, offlineBaseUrl: offline.base_url, ...options });
const aModel = { id: 'm', provider: 'openai', context_window: 8_000 };

describe('the models registry', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'turnlog-models-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function fileOf(content: unknown): Promise<string> {
    const file = join(folder, 'models.json');
    await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  }
  async function problem(
    content: unknown,
    options: Partial<RegistryOptions> = {},
  ): Promise<TurnlogError> {
    const modelsFile = await fileOf(content);
    return load({ modelsFile, ...options }).then(
      () => Promise.reject(new Error('the file was taken')),
      (error: TurnlogError) => error,
    );
  }

  test('offers only the offline model when nothing is configured', async () => {
    expect(await load()).toEqual({
      providers: [offline],
      models: [
        {
          id: 'offline-echo',
          provider: 'offline',
          upstream_model: 'offline-echo',
          context_window: 1_048_576,
        },
      ],
    });
  });

  test("offers OpenAI's models when there is a key", async () => {
    const { providers, models } = await load({ openaiApiKey: 'sk-1' });
    expect(providers).toEqual([
      offline,
      { id: 'openai', base_url: 'https://api.openai.com/v1', api_key: 'sk-1' },
    ]);
    expect(models.map((model) => model.id)).toEqual(
      expect.arrayContaining([
        'gpt-4o',
        'gpt-4o-mini',
        'gpt-4.1',
        'o4-mini',
        'gpt-5',
        'gpt-5-nano',
      ]),
    );
    expect(
      models.every(
        (model) =>
          model.provider === 'openai' &&
          model.upstream_model === model.id &&
          model.max_output_tokens! < model.context_window,
      ),
    ).toBe(true);
  });

  test('takes a base URL without a key', async () => {
    const { providers } = await load({ openaiBaseUrl: 'http://127.0.0.1:8080/v1' });
    expect(providers).toEqual([offline, { id: 'openai', base_url: 'http://127.0.0.1:8080/v1' }]);
  });

  test('offers exactly the models of a file, with the keys that it names', async () => {
    const modelsFile = await fileOf({
      providers: {
        local: { base_url: 'http://127.0.0.1:11434/v1' },
        other: { base_url: 'https://other.example/v1', api_key_env: 'OTHER_KEY' },
      },
      models: [
        {
          id: 'small',
          provider: 'local',
          upstream_model: 'llama',
          context_window: 8_192,
          max_output_tokens: 1_024,
        },
        { id: 'large', provider: 'other', context_window: 100_000 },
        { id: 'echo', provider: 'offline', upstream_model: 'offline-echo', context_window: 1_000 },
        aModel,
      ],
    });
    const { providers, models } = await load({
      modelsFile,
      openaiApiKey: 'sk-1',
      env: { OTHER_KEY: 'k2' },
    });
    expect(providers).toEqual([
      offline,
      { id: 'openai', base_url: 'https://api.openai.com/v1', api_key: 'sk-1' },
      { id: 'local', base_url: 'http://127.0.0.1:11434/v1' },
      { id: 'other', base_url: 'https://other.example/v1', api_key: 'k2' },
    ]);
    expect(models).toEqual([
      {
        id: 'small',
        provider: 'local',
        upstream_model: 'llama',
        context_window: 8_192,
        max_output_tokens: 1_024,
      },
      { id: 'large', provider: 'other', upstream_model: 'large', context_window: 100_000 },
      { id: 'echo', provider: 'offline', upstream_model: 'offline-echo', context_window: 1_000 },
      { ...aModel, upstream_model: 'm' },
    ]);
  });

  test('takes what a provider does not accept', async () => {
    const quirks = {
      max_tokens_field: 'max_tokens',
      stream_options: false,
      response_format: false,
      system_role: 'user',
    };
    const base_url = 'http://127.0.0.1:8000/v1';
    const models = [{ id: 'm', provider: 'local', context_window: 2_048 }];
    const modelsFile = await fileOf({ providers: { local: { base_url, ...quirks } }, models });
    expect((await load({ modelsFile })).providers).toContainEqual({
      id: 'local',
      base_url,
      ...quirks,
    });
    const wrong = { base_url, max_tokens_field: 'tokens', system_role: 'assistant' };
    const error = await problem({ providers: { local: wrong }, models });
    expect(Object.values(error.details ?? {}).map(({ message }) => message)).toEqual([
      'must be one of: max_completion_tokens, max_tokens',
      'must be one of: system, developer, user',
    ]);
  });

  test('reports every problem of form at once, with the file and the field', async () => {
    const error = await problem({
      providers: { p: { base_url: 'ftp://x', api_key: 'sk-in-the-file' } },
      models: [{ id: '', provider: 'p', context_window: '8k' }],
      extra: 1,
    });
    expect(error.code).toBe('configuration_invalid');
    expect(error.message).toContain('models.json');
    for (const place of [
      '/providers/p/base_url',
      '/providers/p/api_key',
      '/models/0/id',
      '/models/0/context_window',
      '/extra',
    ])
      expect(error.message).toContain(place);
    expect(error.message).not.toContain('sk-in-the-file');
    expect(Object.values(error.details ?? {}).map((detail) => detail.path)).toContain('/extra');
  });

  test('reports every problem of meaning at once', async () => {
    const error = await problem({
      providers: {
        offline: { base_url: 'http://x/v1' },
        p: { base_url: 'http://x/v1', api_key_env: 'NOT_SET' },
      },
      models: [aModel, { ...aModel, provider: 'p', max_output_tokens: 9_000 }],
    });
    expect(Object.values(error.details ?? {}).map((detail) => detail.path)).toEqual([
      '/providers/offline',
      '/providers/p/base_url',
      '/providers/p/api_key_env',
      '/models/0/provider',
      '/models/1/id',
      '/models/1/max_output_tokens',
    ]);
    expect(error.message).toContain('NOT_SET');
  });

  test("takes models' prices as they are written, in US dollars where they do not say", async () => {
    const price = { input_per_million: '0.150000001', output_per_million: '10' };
    const modelsFile = await fileOf({
      models: [
        { ...aModel, price },
        { ...aModel, id: 'other' },
      ],
    });
    const { models } = await load({ modelsFile, openaiApiKey: 'sk-1' });
    expect(models.map((model) => model.price)).toEqual([{ ...price, currency: 'USD' }, undefined]);
  });

  test('reports every price that there can not be, and a second currency', async () => {
    const form = await problem({
      models: [
        { ...aModel, price: { input_per_million: 2.5, output_per_million: '1e3' } },
        { ...aModel, id: 'o', price: { input_per_million: '-1', currency: 'eur' } },
      ],
    });
    expect(Object.values(form.details ?? {})).toEqual([
      { path: '/models/0/price/input_per_million', message: 'must be string' },
      { path: '/models/0/price/output_per_million', message: expect.stringContaining('decimal') },
      { path: '/models/1/price', message: expect.stringContaining('output_per_million') },
      { path: '/models/1/price/input_per_million', message: expect.stringContaining('decimal') },
      { path: '/models/1/price/currency', message: expect.stringContaining('ISO 4217') },
    ]);
    const free = { input_per_million: '0', output_per_million: '0' };
    const meant = await problem(
      {
        models: [
          { ...aModel, price: free },
          { ...aModel, id: 'a', price: { ...free, currency: 'EUR' } },
          { ...aModel, id: 'b', price: { ...free, currency: 'USD' } },
          { ...aModel, id: 'c', price: { ...free, currency: 'CHF' } },
        ],
      },
      { openaiApiKey: 'sk-1' },
    );
    expect(Object.values(meant.details ?? {})).toEqual(
      [1, 3].map((index) => ({
        path: `/models/${index}/price/currency`,
        message: 'must be USD, as that of the first price',
      })),
    );
  });

  test('reports every fallback that there can not be', async () => {
    const fallbacks = ['n', 'm', 'gone', 'n'];
    const models = [
      { ...aModel, fallbacks },
      { ...aModel, id: 'n', fallbacks: ['m'] },
    ];
    const providers = { openai: { base_url: 'http://localhost/v1' } };
    const { details = {} } = await problem({ providers, models });
    expect(Object.values(details).map(({ path }) => path)).toEqual([
      '/models/0/fallbacks/1',
      '/models/0/fallbacks/2',
      '/models/0/fallbacks/3',
    ]);
    const many = Array.from({ length: LIMITS.model.fallbacks + 1 }, (_, at) => `m${at}`);
    const tooMany = await problem({ providers, models: [{ ...aModel, fallbacks: many }] });
    expect(Object.values(tooMany.details ?? {}).map(({ path }) => path)).toEqual([
      '/models/0/fallbacks',
    ]);
  });

  const withKey = (base_url: string, more: object = {}) => ({
    providers: { p: { base_url, api_key_env: 'KEY', ...more } },
    models: [{ ...aModel, provider: 'p' }],
  });

  test.each([
    'http://models.example/v1',
    'http://10.0.0.7:8000/v1',
    'http://[2001:db8::1]/v1',
    'http://127.0.0.1.example/v1',
    'http://localhost.example/v1',
  ])('refuses to send a key to %s', async (base_url) => {
    const error = await problem(withKey(base_url), { env: { KEY: 'k' } });
    expect(error.code).toBe('configuration_invalid');
    expect(error.message).toMatch(/\/providers\/p\/base_url would send the key over plain http/);
    await expect(load({ openaiApiKey: 'k', openaiBaseUrl: base_url })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining('OPENAI_BASE_URL would send the key over plain http'),
    });
  });

  test.each([
    ['to this machine', 'http://127.0.0.2:8000/v1', {}],
    ['to this machine by its name', 'http://localhost:8000/v1', {}],
    ['to this machine over IPv6', 'http://[::1]:8000/v1', {}],
    ['over https', 'https://models.example/v1', {}],
    [
      'over plain http where the file says so',
      'http://models.example/v1',
      { allow_plain_http: true },
    ],
  ])('sends a key %s', async (_, base_url, more) => {
    const modelsFile = await fileOf(withKey(base_url, more));
    const { providers } = await load({ modelsFile, env: { KEY: 'k' } });
    expect(providers).toContainEqual({ id: 'p', base_url, api_key: 'k' });
  });

  test('lets a file say that OPENAI_BASE_URL is not meant, and plain http is', async () => {
    const openai = {
      base_url: 'http://models.example/v1',
      api_key_env: 'KEY',
      allow_plain_http: true,
    };
    const modelsFile = await fileOf({ providers: { openai }, models: [aModel] });
    const openaiBaseUrl = 'http://other.example/v1';
    const { providers } = await load({
      modelsFile,
      openaiApiKey: 'k',
      openaiBaseUrl,
      env: { KEY: 'k' },
    });
    expect(providers).toContainEqual({ id: 'openai', base_url: openai.base_url, api_key: 'k' });
  });

  test.each([
    ['is not JSON', '{"models":', 'not valid JSON'],
    ['names no model', { models: [] }, '/models'],
    [
      'holds credentials in a URL',
      {
        providers: { p: { base_url: 'http://me:pw@x/v1' } },
        models: [{ ...aModel, provider: 'p' }],
      },
      '/providers/p/base_url',
    ],
  ])('refuses a file that %s', async (_, content, place) => {
    const error = await problem(content);
    expect(error).toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining(place),
    });
    expect(error.message).not.toContain('me:pw');
  });

  test('refuses a file that is not there', async () => {
    await expect(load({ modelsFile: join(folder, 'absent.json') })).rejects.toMatchObject({
      code: 'configuration_invalid',
      message: expect.stringContaining("can't be read (ENOENT)"),
    });
  });
});
