import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { LinkButton } from '../components/Button.tsx';
import { type ChartSeries } from '../components/Chart.tsx';
import { formatNumber } from '../sessions/session/format.ts';
import { EmptyState, StatusBadge, Time, View } from '../components/view.tsx';
import { ROW_LINK, VirtualList } from '../components/EntryList.tsx';
import { useAgentNames } from '../agents/agentQueries.ts';
import { replaysQuery, type Replay } from './replayQueries.ts';

const COLUMNS =
  'grid gap-x-4 md:grid-cols-[minmax(0,1fr)_9rem_8rem_4rem_4.5rem_4rem_13rem] md:items-center';

/** The outcomes of turns, as charts and badges show them. */
export const OUTCOMES = [
  ['same', 'Same', 1],
  ['changed', 'Changed', 2],
  ['failed', 'Failed', 3],
  ['skipped', 'Skipped', 4],
] as const satisfies readonly ChartSeries[];

/** The replacements of a replay, in words. */
export function Replacements({ of }: { of: Replay['replacements'] }) {
  const { agent_id, agent_revision: revision, model, instruction } = of;
  const agents = useAgentNames();
  const parts = [
    agent_id && (agents.get(agent_id) ?? agent_id),
    revision !== undefined && `revision ${revision}`,
    model && `model ${model}`,
    instruction && 'another instruction',
  ];
  return parts.filter((part) => part).join(' · ') || 'As recorded';
}

/** How far a replay is, and with which outcomes. */
export function Progress({ turns }: { turns: Replay['sums']['turns'] }) {
  const compared = OUTCOMES.reduce((sum, [key]) => sum + turns[key], 0);
  return (
    <div className="grid gap-1 text-xs text-muted-foreground tabular-nums">
      {formatNumber(compared)} of {formatNumber(turns.total)} turns
      <div aria-hidden className="flex h-1.5 overflow-hidden rounded-full bg-muted">
        {OUTCOMES.map(([key, , look]) => {
          const width = `${(turns[key] / Math.max(turns.total, 1)) * 100}%`;
          return <span key={key} style={{ width, background: `var(--color-chart-${look})` }} />;
        })}
      </div>
    </div>
  );
}

/** The replays of the account, newest first. */
export const ReplaysView = () => (
  <View
    title="Replays"
    description="Recorded sessions that ran again, and how the answers compare."
    actions={
      <LinkButton variant="primary" to="/replays/new">
        <Plus aria-hidden /> New replay
      </LinkButton>
    }
    className="flex flex-col overflow-hidden p-0 md:p-0"
  >
    <VirtualList
      label="Replays"
      query={useInfiniteQuery(replaysQuery)}
      idOf={({ replay_id }) => replay_id}
      estimate={56}
      empty={
        <EmptyState title="No replays yet">
          A replay runs recorded sessions again, for example with another model or instruction, and
          compares the answers. The recorded sessions do not change.
        </EmptyState>
      }
    >
      {({ replay_id: replayId, replacements, status, sums: { turns }, created_at }) => (
        <div className={`${COLUMNS} border-b px-4 py-2 hover:bg-muted/60 md:px-6`}>
          <div className="min-w-0 text-xs text-muted-foreground">
            <Link
              to="/replays/$replayId"
              params={{ replayId }}
              className={`${ROW_LINK} text-sm text-foreground`}
            >
              <Replacements of={replacements} />
            </Link>
            <span className="block truncate">{replayId}</span>
          </div>
          <span>
            <StatusBadge status={status} />
          </span>
          <Progress turns={turns} />
          <span className="flex gap-3 text-xs tabular-nums md:contents">
            {OUTCOMES.slice(0, 3).map(([key]) => (
              <span key={key}>
                {formatNumber(turns[key])} {key}
              </span>
            ))}
          </span>
          <Time value={created_at} className="text-xs text-muted-foreground md:text-right" />
        </div>
      )}
    </VirtualList>
  </View>
);
