import { ANY_REPLAY, type SessionFilter } from '../../../shared/sessions/sessionFilter.ts';

const PARTS: Record<string, SessionFilter> = {
  agent: { agent_id: 'agent_1' },
  idle: { status: 'idle' },
  running: { status: 'running' },
  completed: { outcome: 'completed' },
  failed: { outcome: 'failed' },
  interrupted: { outcome: 'interrupted' },
  label: { labels: [['a', '1']] },
  created_from: { created_from: '2026-01-01T00:00:00.000Z' },
  created_to: { created_to: '2027-01-01T00:00:00.000Z' },
  updated_from: { updated_from: '2026-01-01T00:00:00.000Z' },
  updated_to: { updated_to: '2027-01-01T00:00:00.000Z' },
  replay: { replay_id: 'replay_1' },
  'any replay': { replay_id: ANY_REPLAY },
};

/** Every filter of sessions with one condition or two, and all of them, with a name. */
export function sessionFilters(): [name: string, SessionFilter][] {
  const parts = Object.entries(PARTS);
  const one = [['nothing', {}] as [string, SessionFilter], ...parts];
  const two = parts.flatMap(([first, filter], at) =>
    parts
      .slice(at + 1)
      .map(([second, other]): [string, SessionFilter] => [
        `${first} and ${second}`,
        { ...filter, ...other },
      ]),
  );
  const { 'any replay': _, ...all } = PARTS;
  return [...one, ...two, ['everything', Object.assign({}, ...Object.values(all))]];
}
