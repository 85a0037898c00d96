import { patiently } from './patiently.ts';
import { asker, startProbes, type Answered, type Ask, type Probes } from './probes.ts';

const EVERY_MS = 100;

export interface Neighbour extends Probes {
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
const run: Step = async (ask, { agents, sessions }) => {
  const answer = await ask('POST', `/v1/agents/${agents.at(-1)}/run`, { input: 'hi' });
  if (answer.status === 200) sessions.push(answer.body.data);
  return answer;
};
/** Finds the last session by its words: what was acknowledged is found. */
const findLast: Step = async (ask, { sessions }) => {
  const answer = await ask('GET', '/v1/sessions?q=hi+done&limit=1');
  const [found] = (answer.status === 200 ? answer.body.data : []) as { session_id: string }[];
  if (answer.status === 200 && found?.session_id !== sessions.at(-1)?.session_id)
    throw new Error(`a search found ${found?.session_id}, and not ${sessions.at(-1)?.session_id}`);
  return answer;
};
const STEPS: readonly Step[] = [
  create,
  (ask, { agents }) => ask('GET', `/v1/agents/${agents.at(-1)}`),
  (ask) => ask('GET', '/v1/agents?limit=10'),
  run,
  (ask, { sessions }) => ask('GET', `/v1/sessions/${sessions.at(-1)?.session_id}`),
  findLast,
];

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

  return { ...probes, missing };
}
