import type { Battle } from '../attack.ts';
import { size } from '../../../jest/size.ts';

const CLIENTS = 16;
/** Sessions that are there before they are listed. */
const SESSIONS = size({ small: 300, full: 20_000 });

/** Filters that leave all sessions, few of them or none, by one index or by several. */
const FILTERS = [
  'updated_to=2020-01-01T00:00:00Z',
  'updated_from=2020-01-01T00:00:00Z&order=oldest',
  'status=idle&created_to=2020-01-01T00:00:00Z&updated_from=2020-01-01T00:00:00Z',
  'created_from=2020-01-01T00:00:00Z&label=no:such',
  'status=running&updated_from=2020-01-01T00:00:00Z',
  'q=nothing&updated_to=2020-01-01T00:00:00Z',
  'q=what&updated_from=2020-01-01T00:00:00Z',
];

/** What the attack must meet: an answer to a list, and not only to the runs before it. */
export const LISTED = '200 filtered list';

/** Clients that make many sessions, and then list them by every filter. */
export async function filterSessions({ clients, call, prey, report }: Battle): Promise<void> {
  const run = `/v1/agents/${prey.agents.quick}/run`;
  const body = JSON.stringify({ input: 'What is 1+1?' });
  let made = 0;
  await clients(CLIENTS, async (agent, client, turn) => {
    if (made < SESSIONS) {
      made += 1;
      return call({ method: 'POST', path: run, body, agent });
    }
    const filter = FILTERS[(client + turn) % FILTERS.length]!;
    const answer = await call({ path: `/v1/sessions?limit=10&${filter}`, agent });
    if (answer?.status === 200) report.answers[LISTED] = (report.answers[LISTED] ?? 0) + 1;
    return answer;
  });
}
