import { randomUUID } from 'node:crypto';
import { describe, expect, jest, test } from '@jest/globals';
import { chatRequest, compactionRequest } from '../../../../../shared/sessions/turns/prompt.ts';
import { canonicalJson } from '../../../../../shared/eventlog/canonicalJson.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import { sha256 } from '../../../../../shared/eventlog/hashChain.ts';
import { bytesOf } from '../../../../../shared/ports/eventStore.ts';
import { readRequests } from '../../../../../shared/sessions/turns/turnRequests.ts';
import {
  agentCreated,
  sessionCompacted,
  sessionDescribed,
  sessionErased,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { SLICE_BYTES } from '../../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

type Shape = { type: string; data: any };
const SETTINGS = { model: 'm' };
const hashOf = (request: object): string => sha256(canonicalJson(request));

/** A session in a log, and who reads the requests of its turns; the read models know `ended`. */
function session(shapes: readonly Shape[], ended: Record<number, number> = {}) {
  const history = recordHistory();
  const record = (stream: string, shape: Shape) =>
    history.record({ stream }, { id: randomUUID(), ...shape } as never);
  const agent = record('agent-agent_1', agentCreated({ instruction: 'Be brief.' }));
  const log = [agent, ...shapes.map((shape) => record('session-session_1', shape))];
  const warned: unknown[][] = [];
  const held: number[] = [];
  const damaged = createDamagedStreams(() => undefined);
  const row = { agent_id: 'agent_1', status: 'idle', revision: shapes.length - 1 };
  const read = (turn: number, page: { after?: number; limit?: number; bytes?: number } = {}) =>
    readRequests(
      {
        store: { ...memoryReads(log), keys: memoryKeys().keys },
        damaged,
        logger: { warn: (...line: unknown[]) => void warned.push(line) } as never,
        readModels: {
          findSession: async () => undefined,
          findTranscript: async () =>
            ({
              session: row,
              turns: {
                rows: turn in ended ? [{ turn, status: 'completed', revision: ended[turn] }] : [],
                more: false,
              },
            }) as never,
        },
      },
      { account_id: 'acct_1', session_id: 'session_1', turn },
      { limit: 100, bytes: 1_000_000, ...page, hold: (bytes) => void held.push(bytes) },
    );
  return { log, read, warned, held, damaged };
}

const turnOf = (turn: number) => ({
  turn,
  input: `in ${turn}`,
  tool_calls: [],
  output: `out ${turn}`,
});
const call = (request: object) => ({
  request_sha256: hashOf(request),
  response_id: 'r',
  model: 'm',
  finish_reason: 'stop',
  tokens: { prompt: 1, completion: 1, total: 2 },
  duration_ms: 1,
});

/** A turn of one call, with the turns that its request holds. */
function plain(turn: number, from: number, more: { started?: object; instruction?: string } = {}) {
  const earlier = Array.from({ length: turn - from }, (_, at) => turnOf(from + at));
  const request = chatRequest(SETTINGS, more.instruction ?? 'Be brief.', earlier, {
    ...turnOf(turn),
    output: undefined,
  });
  return [
    turnStarted(turn, {
      input: `in ${turn}`,
      settings: SETTINGS,
      context_from_turn: from,
      agent_revision: 0,
      ...more.started,
    }),
    turnCompleted(turn, { output: `out ${turn}`, calls: [call(request)] }),
  ];
}

describe('the requests of a turn', () => {
  test('are read back to the oldest turn that they hold, and no further', async () => {
    const turns = Array.from({ length: 100 }, (_, at) => plain(at + 1, Math.max(1, at))).flat();
    const { log, read, held } = session([sessionStarted(), ...turns], { 60: 120 });
    const { rows } = await read(60);
    expect(rows).toMatchObject([{ number: 1, round: 1, matches: true }]);
    const page = log.slice(1).filter(({ revision }) => revision > 112 && revision <= 120);
    expect(held).toEqual([page.reduce((sum, event) => sum + bytesOf(event), 0)]);
  });

  test('are found at the end of the log where the read models do not know of the end yet', async () => {
    const turns = Array.from({ length: 30 }, (_, at) => plain(at + 1, 1)).flat();
    const { read } = session([sessionStarted(), ...turns]);
    expect((await read(30)).rows).toMatchObject([{ matches: true }]);
    await expect(read(31)).rejects.toMatchObject({ code: 'turn_not_found' });
  });

  test('have the summary that was made right before the turn, and the request that asked for it', async () => {
    const asked = compactionRequest(SETTINGS, undefined, [turnOf(1), turnOf(2)]);
    const summary = 'They spoke.';
    const shapes = [
      sessionStarted(),
      ...plain(1, 1),
      ...plain(2, 1),
      sessionDescribed(),
      sessionCompacted(1, 2, { summary, settings: SETTINGS, call: call(asked) }),
      sessionDescribed(),
      ...plain(3, 3, {
        started: { summary_revision: 6, context: { turns: 0, dropped: 0, compacted: 2 } },
        instruction: `Be brief.\n\nWhat was said before, in short:\n${summary}`,
      }),
      ...plain(4, 3, {
        started: { summary_revision: 6, context: { turns: 1, dropped: 0, compacted: 2 } },
        instruction: `Be brief.\n\nWhat was said before, in short:\n${summary}`,
      }),
      ...plain(5, 5, { started: { summary_revision: 6, context: { turns: 0, dropped: 4 } } }),
    ];
    const { read } = session(shapes);
    expect((await read(3)).rows).toMatchObject([
      { number: 1, purpose: 'compaction', round: null, matches: true },
      { number: 2, purpose: 'answer', round: 1, matches: true },
    ]);
    for (const turn of [2, 4, 5])
      expect((await read(turn)).rows).toMatchObject([{ purpose: 'answer', matches: true }]);
  });

  test('that are not those that were sent say so, and so does one line of the log, without their texts', async () => {
    const [started, completed] = plain(2, 1) as [Shape, Shape];
    const other = { ...completed, data: { ...completed.data, calls: [call({}), call({})] } };
    const { read, warned } = session([sessionStarted(), ...plain(1, 1), started, other]);
    expect((await read(1)).rows).toMatchObject([{ matches: true }]);
    expect(warned).toEqual([]);
    const { rows } = await read(2);
    expect(rows.map(({ matches }) => matches)).toEqual([false, false]);
    expect(rows[0]!.request_sha256).toBe(hashOf(rows[0]!.request));
    expect(warned).toEqual([
      [{ session_id: 'session_1', turn: 2, calls: [1, 2] }, expect.stringContaining('do not come')],
    ]);
  });

  test('need memory for the texts of earlier turns, but not for their settings', async () => {
    const TURNS = 200;
    const schema = JSON.stringify({ description: 'x'.repeat(32_000) });
    const settings = {
      ...SETTINGS,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    };
    const earlier = Array.from({ length: TURNS }, (_, at) =>
      plain(at + 1, at + 1, { started: { settings } }),
    ).flat();
    const { read, held } = session([sessionStarted(), ...earlier, ...plain(TURNS + 1, 1)]);
    expect((await read(TURNS + 1)).rows).toMatchObject([{ matches: true }]);
    // A page of events and the turns read before; all settings are six megabytes.
    expect(held.length).toBeGreaterThan(5);
    expect(Math.max(...held)).toBeLessThan(1_000_000);
  });

  test('need memory for the tool results of an earlier turn of many pages', async () => {
    const result = 'x'.repeat(200_000);
    const [started, completed] = plain(1, 1) as [Shape, Shape];
    const toolCalls = Array.from({ length: 40 }, () => toolCalled(1, { result }));
    const turns = [started, ...toolCalls, completed, ...plain(2, 1)];
    const { read, held } = session([sessionStarted(), ...turns]);
    await read(2);
    expect(held.length).toBeGreaterThan(2);
    expect(Math.max(...held)).toBeGreaterThan(40 * result.length);
  });

  test('do not parse the tool calls that none of them contains', async () => {
    const invalid = (turn: number): Shape => toolCalled(turn, { extra: '{' });
    const [started, completed] = plain(1, 1) as [Shape, Shape];
    const uncalled = { ...completed, data: { ...completed.data, calls: [] } };
    const turns = [started, invalid(1), uncalled, ...plain(2, 2)];
    const { read, damaged } = session([sessionStarted(), ...turns]);
    expect(await read(1)).toMatchObject({ rows: [] });
    expect((await read(2)).rows).toMatchObject([{ matches: true }]);
    expect(damaged.count()).toBe(0);
  });

  test('end a page at its bytes, but not before the first', async () => {
    const [started, completed] = plain(1, 1) as [Shape, Shape];
    const [one] = completed.data.calls;
    const three = { ...completed, data: { ...completed.data, calls: [one, one, one] } };
    const { read } = session([sessionStarted(), started, three]);
    expect(await read(1, { bytes: 1 })).toMatchObject({ rows: [{ number: 1 }], more: true });
    expect(await read(1, { bytes: 1, after: 2 })).toMatchObject({
      rows: [{ number: 3 }],
      more: false,
    });
    expect(await read(1, { limit: 2 })).toMatchObject({ rows: [{}, {}], more: true });
  });

  test('that corrected tool calls parse one large call per turn of the event loop', async () => {
    const large = JSON.stringify({ a: 'x'.repeat(SLICE_BYTES) });
    const [started, completed] = plain(1, 1) as [Shape, Shape];
    const toolCalls = [large, large, large].map((args) => toolCalled(1, { arguments: args }));
    const corrected = { ...call({}), form: { corrected_calls: true } };
    const calls = [corrected, corrected];
    const { read } = session([
      sessionStarted(),
      started,
      ...toolCalls,
      { ...completed, data: { ...completed.data, calls } },
    ]);
    let loopTurns = 0;
    const countTurns = (): void => {
      loopTurns += 1;
      counting = setImmediate(countTurns);
    };
    let counting = setImmediate(countTurns);
    const parsedAt: number[] = [];
    const parse = JSON.parse;
    jest.spyOn(JSON, 'parse').mockImplementation((...args) => {
      if (args[0] === large) parsedAt.push(loopTurns);
      return parse(...args) as unknown;
    });
    await read(1);
    clearImmediate(counting);
    jest.restoreAllMocks();
    expect(parsedAt).toHaveLength(3);
    expect(new Set(parsedAt).size).toBe(3);
  });

  test('of an erased session are gone, also before the read models have seen it', async () => {
    const { read } = session([sessionStarted(), ...plain(1, 1), sessionErased()]);
    await expect(read(1)).rejects.toMatchObject({ code: 'session_erased' });
  });

  test('whose form of the answer is no JSON any more are of a damaged stream', async () => {
    const settings = {
      ...SETTINGS,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: '{' } },
    };
    const { read, damaged } = session([
      sessionStarted(),
      ...plain(1, 1, { started: { settings } }),
    ]);
    await expect(read(1)).rejects.toMatchObject({ code: 'stream_damaged' });
    expect(damaged.count()).toBe(1);
  });
});
