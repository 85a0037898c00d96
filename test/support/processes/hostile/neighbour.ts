import { patiently } from './patiently.ts';
import { asker, startProbes, type Answered, type Ask, type Probes } from './probes.ts';

const EVERY_MS = 100;
const SEARCH_EVERY_MS = 500;

export interface Neighbour extends Probes {
  /** Searches for the last session: they wait for the index, and may not fail. */
  searches: Probes;
  /** What it was told was done, and is not there: empty when all is well. */
  missing(): Promise<string[]>;
}

interface Told {
  agents: string[];
  sessions: { session_id: string; output: string }[];
}

type Step = (ask: Ask, told: Told) => Promise<Answered>;

const create: Step = async (ask, { agents }) => {
  const body = { name: 'Small', instruction: 'Be brief.', model: 'quick' };
  const answer = await ask('POST', '/v1/agents', body);
  if (answer.status === 200) agents.push(answer.body.data.agent_id);
  return answer;
};
/** The check of the schema waits for the checks of other accounts. */
const createWithSchema: Step = async (ask, { agents }) => {
  const schema = { type: 'object', title: `${agents.length}` };
  const response_format = { type: 'json_schema', json_schema: { name: 'small', schema } };
  const body = { name: 'Small', instruction: 'Be brief.', model: 'quick', response_format };
  const answer = await ask('POST', '/v1/agents', body);
  if (answer.status === 200) agents.unshift(answer.body.data.agent_id);
  return answer;
};
const run: Step = async (ask, { agents, sessions }) => {
  const answer = await ask('POST', `/v1/agents/${agents.at(-1)}/run`, { input: 'hi' });
  if (answer.status === 200) sessions.push(answer.body.data);
  return answer;
};
const STEPS: readonly Step[] = [
  create,
  (ask, { agents }) => ask('GET', `/v1/agents/${agents.at(-1)}`),
  (ask) => ask('GET', '/v1/agents?limit=10'),
  run,
  createWithSchema,
  (ask, { sessions }) => ask('GET', `/v1/sessions/${sessions.at(-1)?.session_id}`),
];

/** Finds the last session by its words, unless the response says that the index is behind. */
async function findLast(ask: Ask, { sessions }: Told): Promise<string | undefined> {
  const last = sessions.at(-1)!.session_id;
  const { status, body } = await ask('GET', '/v1/sessions?q=hi+done&limit=1');
  if (status !== 200) return `a search: ${status} ${JSON.stringify(body).slice(0, 300)}`;
  const isThere = body.index !== undefined || body.data[0]?.session_id >= last;
  return isThere ? undefined : `a search found ${body.data[0]?.session_id}, and not ${last}`;
}

/** An account of its own that does small things, one every 100 ms. */
export async function startNeighbour(url: string, key: string): Promise<Neighbour> {
  const told: Told = { agents: [], sessions: [] };
  const ask = asker(url, key);
  // There is something to read before the first step fails.
  for (const step of STEPS) await step(ask, told);
  let next = 0;
  const probes = startProbes(EVERY_MS, async () => {
    const at = next++ % STEPS.length;
    const { status, body } = await STEPS[at]!(ask, told);
    return status === 200
      ? undefined
      : `step ${at}: ${status} ${JSON.stringify(body).slice(0, 300)}`;
  });

  const search = asker(url, key);
  const searches = startProbes(SEARCH_EVERY_MS, () => findLast(search, told));

  async function missing(): Promise<string[]> {
    const { body } = await patiently(() => ask('GET', '/v1/agents'));
    const listed = new Set((body.data as { agent_id: string }[]).map(({ agent_id }) => agent_id));
    const lost = told.agents.filter((agent) => !listed.has(agent));
    for (const { session_id, output } of told.sessions) {
      const transcript = (await patiently(() => ask('GET', `/v1/sessions/${session_id}`))).body
        .data;
      if (transcript?.turns[0]?.output !== output) lost.push(session_id);
    }
    return lost;
  }

  return {
    ...probes,
    searches,
    missing,
    stop: async () => void (await Promise.all([probes.stop(), searches.stop()])),
  };
}
