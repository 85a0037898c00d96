import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exported, linesOf } from '../../support/http/exported.ts';
import { echo, forking } from '../../support/http/forking.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
let does: ReturnType<typeof forking>;
beforeAll(async () => {
  service = await startTestService(echo);
  agent = await service.createAgent();
  does = forking(service);
});
afterAll(() => service.close());

const textOf = async (session: string, format: string): Promise<string> => {
  const { status, text } = await exported(
    service,
    `/v1/sessions/${session}/export?format=${format}`,
  );
  expect(status).toBe(200);
  return text;
};

/** By format: the inputs of the turns, in order. */
const INPUTS: Readonly<Record<string, (lines: any[]) => string[]>> = {
  'openai-chat': ([{ messages }]) =>
    messages.filter(({ role }: any) => role === 'user').map(({ content }: any) => content),
  atif: ([{ steps }]) =>
    steps.filter(({ source }: any) => source === 'user').map(({ message }: any) => message),
  inspect: ([{ samples }]) =>
    samples[0].messages
      .filter(({ role }: any) => role === 'user')
      .map(({ content }: any) => content),
  otel: (lines) =>
    lines.flatMap(({ resourceSpans: [{ scopeSpans }] }) =>
      scopeSpans[0].spans
        .filter(({ name }: any) => name.startsWith('invoke_agent'))
        .flatMap(({ attributes }: any) => attributes)
        .filter(({ key }: any) => key === 'gen_ai.input.messages')
        .map(({ value }: any) => JSON.parse(value.stringValue)[0].parts[0].content),
    ),
};

describe.each(Object.keys(INPUTS))('a fork as %s', (format) => {
  const inputsOf = async (session: string): Promise<string[]> =>
    INPUTS[format]!(linesOf(await textOf(session, format)));

  test('begins with the turns that it shares, and is the same each time', async () => {
    const origin = await does.run(agent, ['a', 'b', 'c']);
    const first = (await does.fork(origin, 2)).session_id;
    expect(await inputsOf(first)).toEqual(['a', 'b']);
    await does.run(agent, ['d', 'e'], first);
    const second = (await does.fork(first, 3)).session_id;
    await does.run(agent, ['f'], second);
    expect(await inputsOf(second)).toEqual(['a', 'b', 'd', 'f']);
    expect(await inputsOf(first)).toEqual(['a', 'b', 'd', 'e']);
    expect(await inputsOf(origin)).toEqual(['a', 'b', 'c']);
    expect(await textOf(second, format)).toBe(await textOf(second, format));
  });

  test('begins after the turns of an erased session, and of those before it', async () => {
    const origin = await does.run(agent, ['a']);
    const first = (await does.fork(origin, 1)).session_id;
    await does.run(agent, ['b'], first);
    const second = (await does.fork(first, 2)).session_id;
    await does.run(agent, ['c'], second);
    await does.erase(origin);
    expect(await inputsOf(second)).toEqual(['b', 'c']);
    await does.erase(first);
    expect(await inputsOf(second)).toEqual(['c']);
    const all = await exported(service, `/v1/export?format=${format}&limit=1`);
    expect(INPUTS[format]!(linesOf(all.text))).toEqual(['c']);
  });
});

test('a fork as events has its own', async () => {
  const { session_id } = await does.fork(await does.run(agent, ['a']), 1);
  await does.run(agent, ['b'], session_id);
  expect(linesOf(await textOf(session_id, 'events'))).toEqual(await does.events(session_id));
});
