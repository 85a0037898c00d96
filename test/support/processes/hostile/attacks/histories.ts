import type { Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

/** As large as an input may be, and of few tokens: any number of them fits a context window. */
const SPACES = `${' '.repeat(512 * 1_024 - 1)}x`;
const TURNS = size({ small: 12, full: 56 });
const FORKS = 8;
/** As many turns as a prompt of the largest size has. */
const PROMPT_TURNS = 8;
const PROMPT_SESSIONS = 32;
const REPLAYS = 4;
const RETRY_MS = 250;
/** How the table counts runs of forks, apart from those that make the session. */
export const OF_A_FORK = '200 of a fork';

/** Repeats a request until it succeeds or the attack is over; resolves with an id in the answer. */
async function untilDone(
  battle: Battle,
  path: string,
  body: object,
  id: RegExp,
): Promise<string | undefined> {
  while (!battle.signal.aborted) {
    const answer = await battle.call({ method: 'POST', path, body: JSON.stringify(body) });
    const found = answer && answer.status < 300 && id.exec(answer.head)?.[1];
    if (found) return found;
    await battle.pause(RETRY_MS);
  }
  return undefined;
}

const SESSION_ID = /"session_id":"(session_\w+)"/;
const runPath = ({ prey }: Battle): string => `/v1/agents/${prey.agents.quick}/run`;

/** Forks of a session of so many turns of the largest size. */
async function largeForks(battle: Battle, turns: number, forks: number): Promise<string[]> {
  let session_id: string | undefined;
  for (let turn = 0; turn < turns; turn += 1) {
    const body = { input: SPACES, ...(session_id !== undefined && { session_id }) };
    session_id = await untilDone(battle, runPath(battle), body, SESSION_ID);
  }
  const made: string[] = [];
  if (session_id === undefined) return made;
  for (let fork = 0; fork < forks; fork += 1) {
    const path = `/v1/sessions/${session_id}/fork`;
    const id = await untilDone(battle, path, { at_turn: turns }, SESSION_ID);
    if (id !== undefined) made.push(id);
  }
  return made;
}

const runEach = (battle: Battle, sessions: readonly string[]): Promise<void> =>
  battle.clients(sessions.length, async (agent, client) => {
    const body = JSON.stringify({ input: 'x', session_id: sessions[client] });
    const answer = await battle.call({ method: 'POST', path: runPath(battle), body, agent });
    if (answer?.status !== 200) return battle.pause(RETRY_MS);
    const { answers } = battle.report;
    answers[OF_A_FORK] = (answers[OF_A_FORK] ?? 0) + 1;
  });

/** Runs of one byte in forks of a session whose turns are large and of few tokens. */
export async function loadHistories(battle: Battle): Promise<void> {
  await runEach(battle, await largeForks(battle, TURNS, FORKS));
}

/** Replays of such forks, which a restart resumes. */
export async function replayHistories(battle: Battle): Promise<void> {
  const sessions = await largeForks(battle, TURNS, FORKS);
  const body = { sessions, tools: 'recorded', concurrency: 4, budget: { tokens: 1_000_000_000 } };
  await battle.clients(REPLAYS, async () => {
    await untilDone(battle, '/v1/replays', body, /"replay_id":"(\w+)"/);
    await battle.pause(RETRY_MS);
  });
}

/** Runs of many sessions whose prompts are as large as they may be. */
export async function largePrompts(battle: Battle): Promise<void> {
  await runEach(battle, await largeForks(battle, PROMPT_TURNS, PROMPT_SESSIONS));
}
