import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { api } from '../api/client.ts';
import { Button, LinkButton } from '../components/Button.tsx';
import { Chart, TOKEN_SERIES, type ChartSeries } from '../components/Chart.tsx';
import { formatNumber } from '../sessions/session/format.ts';
import {
  Alert,
  Badge,
  Card,
  EmptyState,
  Facts,
  Loaded,
  StatusBadge,
  Time,
  View,
} from '../components/view.tsx';
import { ROW_LINK, VirtualList } from '../components/EntryList.tsx';
import { BeforeAfter } from './BeforeAfter.tsx';
import { OUTCOMES, Progress, Replacements } from './ReplaysView.tsx';
import { ReplayTurnView } from './ReplayTurnView.tsx';
import { replayQuery, turnsQuery, useReplayProgress, type ShownReplay } from './replayQueries.ts';
import { formatTurnId, parseTurnId, TURN_FILTERS, type TurnFilter } from './search.ts';

const route = getRouteApi('/replays/$replayId');

const LATENCY = [
  ['recorded', 'Recorded', 1],
  ['replayed', 'Replayed', 2],
] as const satisfies readonly ChartSeries[];

/** The settings of a replay, and its use of the budget. */
function Settings({ replay: { replay_id, settings, sums } }: { replay: ShownReplay }) {
  const used = sums.replayed.tokens.total + sums.judge_tokens + sums.other_tokens;
  const { added, missing, changed } = sums.tools;
  const { from = 1, up_to = 'the last' } = settings.turns ?? {};
  const facts = [
    ['Tool results', settings.tools === 'live' ? 'from the tools' : 'as recorded'],
    ['Tool calls', `${added} added, ${missing} missing, ${changed} changed`],
    ['Turns', `${from} to ${up_to}`],
    ['Token budget', `${formatNumber(used)} of ${formatNumber(settings.budget.tokens)} used`],
    ['Checks', `${sums.checks.passed} passed, ${sums.checks.failed} failed`],
    ['Sessions', `${sums.sessions.completed} of ${sums.sessions.total} completed`],
  ] as const;
  return (
    <Card className="grid content-start gap-3">
      <Facts facts={facts} className="md:grid-cols-2" />
      {settings.instruction !== undefined && (
        <details>
          <summary>Instruction</summary>
          <p className="break-words whitespace-pre-wrap">{settings.instruction}</p>
        </details>
      )}
      <Link to="/sessions" search={{ replay_id }} className="text-primary underline">
        Sessions that this replay made
      </Link>
    </Card>
  );
}

function TurnList({ replay, filter }: { replay: ShownReplay; filter: TurnFilter }) {
  const { replay_id: replayId, status, sums } = replay;
  const query = useInfiniteQuery(turnsQuery(replayId, filter));
  const again = status === 'running' && (
    <Button size="small" onClick={() => void query.refetch()}>
      Show the turns compared meanwhile
    </Button>
  );
  return (
    <>
      {(query.data ?? []).length > 0 && again}
      <VirtualList
        label="Turns"
        query={query}
        idOf={formatTurnId}
        estimate={44}
        className="max-h-[70dvh] rounded-lg border bg-card"
        empty={
          <EmptyState title="No such turns" action={again}>
            {sums.turns.changed === 0 && 'No answer has changed. '}
            Choose other turns above.
          </EmptyState>
        }
      >
        {(turn) => (
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b px-4 py-2.5 hover:bg-muted/60 md:flex-nowrap">
            <Link
              to="/replays/$replayId"
              params={{ replayId }}
              search={{ only: filter, compared: formatTurnId(turn) }}
              className={`${ROW_LINK} basis-full md:basis-0 md:grow`}
            >
              Turn {turn.turn} of session …{turn.session_id.slice(-8)}
            </Link>
            {turn.checks.some(({ passed }) => !passed) && (
              <Badge tone="destructive">check failed</Badge>
            )}
            {Object.values(turn.tools).some((count) => count > 0) && <Badge>tools differ</Badge>}
            {turn.code && <code className="text-xs">{turn.code}</code>}
            <span className="text-xs text-muted-foreground tabular-nums">
              {turn.recorded.duration_ms ?? '–'} → {turn.replayed?.duration_ms ?? '–'} ms
            </span>
            <StatusBadge status={turn.outcome} />
          </div>
        )}
      </VirtualList>
    </>
  );
}

/** A replay: its progress, what it compares in total, and its turns or one of them. */
export function ReplayView() {
  const { replayId } = route.useParams();
  const { only: filter = 'changed', compared } = route.useSearch();
  const client = useQueryClient();
  const shown = useQuery(replayQuery(replayId));
  const replay = shown.data;
  const cancel = useMutation({
    mutationFn: () =>
      api.POST('/v1/replays/{replayId}/cancel', { params: { path: { replayId } }, body: {} }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['replays'] }),
  });
  const isRunning = replay?.status === 'running';
  useReplayProgress(replayId, isRunning);
  const opened = parseTurnId(compared);
  if (!replay)
    return (
      <View title="Replay">
        <Loaded query={shown}>{() => null}</Loaded>
      </View>
    );
  if (opened) return <ReplayTurnView key={compared} replay={replay} id={opened} filter={filter} />;
  const { turns, requests, recorded, replayed, checks } = replay.sums;
  const took = LATENCY.map(([id, label]) => {
    const { tokens, duration_ms } = replay.sums[id];
    return { id, label, values: { ...tokens, [id]: duration_ms } };
  });
  return (
    <View
      title={<Replacements of={replay.replacements} />}
      description={
        <span className="flex flex-wrap items-center gap-2">
          <StatusBadge status={replay.status} /> {replay.code} started{' '}
          <Time value={replay.created_at} />
        </span>
      }
      actions={
        isRunning && (
          <Button variant="destructive" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
            Cancel replay
          </Button>
        )
      }
    >
      <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
        {cancel.error && <Alert title={cancel.error.message} />}
        <div role="status">
          <Progress turns={turns} />
        </div>
        <div className="grid gap-3 md:grid-cols-3">
          <Chart
            kind="bars"
            title="Turns"
            series={OUTCOMES}
            rows={[
              { id: 'answers', label: 'Answers', values: turns },
              { id: 'requests', label: 'Requests', values: requests },
            ]}
          />
          <Chart kind="bars" title="Tokens" series={TOKEN_SERIES} rows={took} />
          <Chart kind="bars" title="Latency, in milliseconds" series={LATENCY} rows={took} />
        </div>
        <div className="grid gap-3 md:grid-cols-2">
          <BeforeAfter before={recorded} after={replayed} />
          <Settings replay={replay} />
        </div>
        <nav aria-label="Turns to show" className="flex flex-wrap gap-1">
          {TURN_FILTERS.map((only) => (
            <LinkButton
              key={only}
              variant={only === filter ? 'outline' : 'ghost'}
              size="small"
              to="/replays/$replayId"
              params={{ replayId }}
              search={{ only }}
              aria-current={only === filter ? 'true' : 'false'}
              replace
            >
              <span className="capitalize">{only.replace('_', ' ')}</span>
              {only !== 'all' &&
                formatNumber(only === 'checks_failed' ? checks.failed : turns[only])}
            </LinkButton>
          ))}
        </nav>
        <TurnList key={filter} replay={replay} filter={filter} />
      </div>
    </View>
  );
}
