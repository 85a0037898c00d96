import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { BarChart } from '../components/charts/BarChart.tsx';
import { formatCount, type ChartRow, type ChartSeries } from '../components/charts/ChartFrame.tsx';
import { Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { agentName, useAgents } from '../sessions/useAgents.ts';
import { endOfId, OUTCOMES } from './describe.tsx';
import { replaySessionsQuery, type Replay, type ShownReplay } from './replayQueries.ts';

type Settings = ShownReplay['settings'];
type Took = Replay['sums']['recorded'];

const TOKENS: readonly ChartSeries[] = [
  { key: 'prompt', label: 'Prompt', look: 1 },
  { key: 'completion', label: 'Answer', look: 2 },
];
const TIME: readonly ChartSeries[] = [{ key: 'ms', label: 'Time', look: 1 }];

const SECOND_MS = 1_000;
export const formatMs = (ms: number): string =>
  ms < SECOND_MS ? `${formatCount(ms)} ms` : `${formatCount(Math.round(ms / 10) / 100)} s`;

const formatChange = (before: number, after: number): string => {
  if (before === 0) return '–';
  const percent = Math.round((after / before - 1) * 100);
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)} %`;
};

const formatCost = (cost: Took['cost']): string => (cost ? `${cost.amount} ${cost.currency}` : '–');

/** The same turns before and after, in numbers. */
function Comparison({ recorded, replayed }: { recorded: Took; replayed: Took }) {
  const rows = [
    ['Prompt tokens', recorded.tokens.prompt, replayed.tokens.prompt, formatCount],
    ['Answer tokens', recorded.tokens.completion, replayed.tokens.completion, formatCount],
    ['All tokens', recorded.tokens.total, replayed.tokens.total, formatCount],
    ['Time', recorded.duration_ms, replayed.duration_ms, formatMs],
  ] as const;
  const cell = 'py-1 pl-3 text-right whitespace-nowrap';
  return (
    <table className="w-full text-xs tabular-nums">
      <caption className="pb-2 text-left text-sm font-medium">Before and after</caption>
      <thead>
        <tr className="border-b text-muted-foreground">
          <th scope="col" className="py-1 text-left font-medium">
            Of the turns that ran again
          </th>
          <th scope="col" className={`${cell} font-medium`}>
            Recorded
          </th>
          <th scope="col" className={`${cell} font-medium`}>
            Replayed
          </th>
          <th scope="col" className={`${cell} font-medium`}>
            Change
          </th>
        </tr>
      </thead>
      <tbody className="divide-y">
        {rows.map(([name, before, after, format]) => (
          <tr key={name}>
            <th scope="row" className="py-1 text-left font-normal">
              {name}
            </th>
            <td className={cell}>{format(before)}</td>
            <td className={cell}>{format(after)}</td>
            <td className={cell}>{formatChange(before, after)}</td>
          </tr>
        ))}
        <tr>
          <th scope="row" className="py-1 text-left font-normal">
            Cost
          </th>
          <td className={cell}>{formatCost(recorded.cost)}</td>
          <td className={cell}>{formatCost(replayed.cost)}</td>
          <td className={cell} />
        </tr>
      </tbody>
    </table>
  );
}

const tookRow = (id: string, label: string, { tokens, duration_ms }: Took): ChartRow => ({
  id,
  label,
  values: { ...tokens, ms: duration_ms },
});

/** Outcomes, tokens and time as charts, and the numbers beside them. */
export function ReplayCharts({ sums }: { sums: Replay['sums'] }) {
  const { turns, requests, recorded, replayed } = sums;
  const outcomes: ChartRow[] = [
    { id: 'answers', label: 'Answers', values: turns },
    { id: 'requests', label: 'Requests', values: requests },
  ];
  const took = [tookRow('before', 'Recorded', recorded), tookRow('after', 'Replayed', replayed)];
  return (
    <div className="grid gap-3 md:grid-cols-2 xl:grid-cols-4">
      <BarChart title="Turns" series={OUTCOMES} rows={outcomes} />
      <BarChart title="Tokens" series={TOKENS} rows={took} />
      <BarChart title="Latency, all turns" series={TIME} rows={took} format={formatMs} />
      <Card>
        <Comparison recorded={recorded} replayed={replayed} />
      </Card>
    </div>
  );
}

function IncompleteSessions({ replayId }: { replayId: string }) {
  const { data, error, refetch } = useQuery(replaySessionsQuery(replayId));
  if (error) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton className="h-16" />;
  const rows = data.filter(({ status }) => status !== 'completed');
  if (rows.length === 0) return <p className="text-muted-foreground">All sessions completed.</p>;
  return (
    <ul
      className="max-h-64 divide-y overflow-y-auto"
      tabIndex={0}
      aria-label="Sessions that did not complete"
    >
      {rows.map(({ session_id, status, code, turns }) => (
        <li key={session_id} className="flex flex-wrap gap-x-4 py-1 text-xs">
          <Link
            to="/sessions/$sessionId"
            params={{ sessionId: session_id }}
            className="py-1 text-primary hover:underline"
            title={session_id}
          >
            Session {endOfId(session_id)}
          </Link>
          <span className="py-1">{status.replace('_', ' ')}</span>
          {code !== null && <code className="py-1">{code}</code>}
          <span className="py-1 text-muted-foreground tabular-nums">{turns} turns</span>
        </li>
      ))}
    </ul>
  );
}

const SUMMARY = 'cursor-pointer py-1 font-medium';

/** What a check expects, in words. */
export function describeCheck(check: NonNullable<Settings['checks']>[number]): string {
  if ('equals' in check) return `is “${check.equals}”`;
  if ('contains' in check) return `contains “${check.contains}”`;
  if ('matches' in check) return `matches ${check.matches}`;
  if ('json_schema' in check) return `matches the schema ${JSON.stringify(check.json_schema)}`;
  return `${check.judge.model} judges: ${check.judge.criteria}`;
}

/** What a replay was started with, what it has used, and the sessions that did not complete. */
export function ReplaySettings({ replay }: { replay: Omit<ShownReplay, 'turns'> }) {
  const { settings, sums, replay_id } = replay;
  const agents = useAgents();
  const [areSessionsShown, showSessions] = useState(false);
  const used = sums.replayed.tokens.total + sums.judge_tokens + sums.other_tokens;
  const { sessions, tools, checks } = sums;
  const entries = [
    [
      'Agent',
      settings.agent_id === undefined ? 'as recorded' : agentName(agents, settings.agent_id),
    ],
    ['Revision', settings.agent_revision ?? (settings.agent_id ? 'the newest' : 'as recorded')],
    ['Model', settings.model ?? 'as recorded'],
    ['Tool results', settings.tools === 'live' ? 'from the tools' : 'as recorded'],
    ['Turns', `${settings.turns?.from ?? 1} to ${settings.turns?.up_to ?? 'the last'}`],
    ['Token budget', `${formatCount(used)} of ${formatCount(settings.budget.tokens)} used`],
    [
      'Tool calls',
      `${tools.added} added, ${tools.missing} missing, ${tools.changed} changed, ${tools.unanswered} unanswered`,
    ],
    ['Checks', settings.checks ? `${checks.passed} passed, ${checks.failed} failed` : 'none'],
  ] as const;
  return (
    <Card className="grid gap-3">
      <dl className="grid grid-cols-2 gap-x-6 gap-y-2 md:grid-cols-4">
        {entries.map(([name, value]) => (
          <div key={name} className="min-w-0">
            <dt className="text-xs text-muted-foreground">{name}</dt>
            <dd className="break-words tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
      {settings.instruction !== undefined && (
        <details>
          <summary className={SUMMARY}>Instruction in place of the agent’s</summary>
          <p className="mt-1 max-h-64 overflow-y-auto break-words whitespace-pre-wrap" tabIndex={0}>
            {settings.instruction}
          </p>
        </details>
      )}
      {settings.checks && (
        <details>
          <summary className={SUMMARY}>Checks of each answer</summary>
          <ol className="mt-1 list-decimal pl-6">
            {settings.checks.map((check, at) => (
              <li key={at} className="break-words">
                {describeCheck(check)}
              </li>
            ))}
          </ol>
        </details>
      )}
      <details onToggle={({ currentTarget }) => showSessions(currentTarget.open)}>
        <summary className={SUMMARY}>
          Sessions: {formatCount(sessions.completed)} of {formatCount(sessions.total)} completed,{' '}
          {sessions.stopped} stopped, {sessions.failed} failed
        </summary>
        {areSessionsShown && <IncompleteSessions replayId={replay_id} />}
      </details>
    </Card>
  );
}
