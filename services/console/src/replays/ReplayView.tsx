import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, dataOf } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Dialog } from '../components/Dialog.tsx';
import { Skeleton, View } from '../components/layout.tsx';
import { Alert, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { useAgents } from '../sessions/useAgents.ts';
import { comparedTurns, describeReplacements, StatusBadge } from './describe.tsx';
import { ReplayCharts, ReplaySettings } from './ReplaySummary.tsx';
import { ReplayTurns } from './ReplayTurns.tsx';
import { ReplayTurnView } from './ReplayTurnView.tsx';
import { ProgressBar } from './ReplaysView.tsx';
import { replayQuery, useReplayProgress } from './replayQueries.ts';
import { parseTurnId } from './search.ts';

const route = getRouteApi('/replays/$replayId');

function CancelButton({ replayId }: { replayId: string }) {
  const client = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST('/v1/replays/{replayId}/cancel', { params: { path: { replayId } }, body: {} }),
      ),
    onSuccess: async () => {
      setAsking(false);
      await client.invalidateQueries({ queryKey: ['replays'] });
    },
  });
  return (
    <>
      <Button variant="outline" onClick={() => setAsking(true)}>
        Cancel replay
      </Button>
      <Dialog title="Cancel this replay?" isOpen={isAsking} onClose={() => setAsking(false)}>
        <div className="grid gap-4">
          <p>No further turn starts. The comparisons so far stay.</p>
          {error && <Alert title={error.message} />}
          <div className="flex justify-end gap-2">
            <Button variant="outline" onClick={() => setAsking(false)}>
              Keep it running
            </Button>
            <Button
              variant="destructive"
              disabled={isPending}
              onClick={() => mutate()}
              data-autofocus
            >
              {isPending ? 'Cancelling…' : 'Cancel replay'}
            </Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}

/** A replay: its progress, what it compares in total, and its turns or one of them. */
export function ReplayView() {
  const { replayId } = route.useParams();
  const { only: filter = 'changed', turn } = route.useSearch();
  const agents = useAgents();
  const { data: replay, error, refetch } = useQuery(replayQuery(replayId));
  const isRunning = replay?.status === 'running';
  useReplayProgress(replayId, isRunning);
  const opened = parseTurnId(turn);

  if (error && !replay)
    return (
      <View title="Replay">
        <ErrorState error={error} onRetry={() => void refetch()} />
      </View>
    );
  if (!replay)
    return (
      <View title="Replay">
        <Skeleton className="h-64" />
      </View>
    );
  if (opened) return <ReplayTurnView key={turn} replay={replay} id={opened} filter={filter} />;
  const { turns, sessions } = replay.sums;
  const compared = comparedTurns(turns);
  return (
    <View
      title={
        <span className="flex flex-wrap items-center gap-2">
          <span className="min-w-0 truncate">
            {describeReplacements(replay.replacements, agents)}
          </span>
          <StatusBadge {...replay} />
        </span>
      }
      description={
        <>
          <Link to="/replays" className="text-primary hover:underline">
            Replays
          </Link>{' '}
          · started <Time value={replay.created_at} />
        </>
      }
      actions={
        <>
          <CopyButton text={replayId} label="Copy id" />
          {isRunning && <CancelButton replayId={replayId} />}
        </>
      }
      className="grid grid-cols-[minmax(0,1fr)] content-start gap-4"
    >
      <div className="grid gap-1.5">
        <div
          role="progressbar"
          aria-label="Progress"
          aria-valuemin={0}
          aria-valuemax={turns.total}
          aria-valuenow={compared}
        >
          <ProgressBar turns={turns} />
        </div>
        <p className="text-muted-foreground tabular-nums" role="status">
          {formatCount(compared)} of {formatCount(turns.total)} turns compared, in{' '}
          {formatCount(sessions.total)} {sessions.total === 1 ? 'session' : 'sessions'}
        </p>
      </div>
      <ReplayCharts sums={replay.sums} />
      <ReplaySettings replay={replay} />
      <ReplayTurns replayId={replayId} filter={filter} sums={replay.sums} isRunning={isRunning} />
    </View>
  );
}
