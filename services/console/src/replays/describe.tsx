import type { Schema } from '../api/client.ts';
import type { ChartSeries } from '../components/charts/ChartFrame.tsx';
import { Badge } from '../components/layout.tsx';
import { agentName } from '../sessions/useAgents.ts';
import type { Replay, ReplayTurn } from './replayQueries.ts';

type Outcome = ReplayTurn['outcome'];

/** The outcomes of turns, as the charts show them. */
export const OUTCOMES: readonly (ChartSeries & { key: Outcome })[] = [
  { key: 'same', label: 'Same', look: 1 },
  { key: 'changed', label: 'Changed', look: 2 },
  { key: 'failed', label: 'Failed', look: 3 },
  { key: 'skipped', label: 'Skipped', look: 4 },
];

const OUTCOME_TONES = {
  same: 'success',
  changed: 'warning',
  failed: 'destructive',
  skipped: 'neutral',
} as const;

export const OutcomeBadge = ({ outcome }: { outcome: Outcome }) => (
  <Badge tone={OUTCOME_TONES[outcome]}>{OUTCOMES.find(({ key }) => key === outcome)!.label}</Badge>
);

const STATUSES = {
  running: { label: 'Running', tone: 'neutral' },
  completed: { label: 'Completed', tone: 'success' },
  cancelled: { label: 'Cancelled', tone: 'neutral' },
  budget_exhausted: { label: 'Budget used up', tone: 'warning' },
  failed: { label: 'Failed', tone: 'destructive' },
} as const;

export const StatusBadge = ({ status, code }: Pick<Replay, 'status' | 'code'>) => {
  const { label, tone } = STATUSES[status];
  return (
    <Badge tone={tone}>
      {label}
      {code !== null && <span>({code})</span>}
    </Badge>
  );
};

/** What a replay replaces, in words. */
export function describeReplacements(
  { agent_id, agent_revision, model, instruction }: Replay['replacements'],
  agents: readonly Schema<'Agent'>[],
): string {
  const revision = agent_revision === undefined ? '' : `revision ${agent_revision}`;
  const agent = agent_id === undefined ? '' : agentName(agents, agent_id);
  const parts = [
    [agent, revision].filter((part) => part !== '').join(', '),
    model === undefined ? '' : `model ${model}`,
    instruction ? 'another instruction' : '',
  ].filter((part) => part !== '');
  return parts.length === 0 ? 'As recorded' : parts.join(' · ');
}

/** The turns that were compared so far. */
export const comparedTurns = ({
  same,
  changed,
  failed,
  skipped,
}: Replay['sums']['turns']): number => same + changed + failed + skipped;

/** The end of an id, which tells ids of the same day apart. */
export const endOfId = (id: string): string => `…${id.slice(-8)}`;
