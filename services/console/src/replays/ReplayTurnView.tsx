import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api, dataOf, type Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import {
  Alert,
  Card,
  DataTable,
  EmptyState,
  Facts,
  Loaded,
  StatusBadge,
  View,
} from '../components/view.tsx';
import { TextDiff } from '../components/diff/TextDiff.tsx';
import { SessionLink } from '../sessions/SessionLink.tsx';
import { Plain } from '../sessions/session/texts.tsx';
import { isForView, useKeyDown } from '../shell/useShortcuts.ts';
import { BeforeAfter } from './BeforeAfter.tsx';
import { comparedTurnQuery, turnsQuery } from './replayQueries.ts';
import type { ReplayTurn, ShownReplay } from './replayQueries.ts';
import { formatTurnId, type TurnFilter, type TurnId } from './search.ts';

const LABELS = ['Recorded', 'Replayed'] as const;

/** A turn of a transcript, if there is one. */
const useTurn = (id: TurnId | undefined) =>
  useQuery({
    queryKey: ['sessions', id?.session_id, 'turns', id?.turn],
    queryFn: () => {
      const path = { sessionId: id!.session_id, turn: String(id!.turn) };
      return dataOf(api.GET('/v1/sessions/{sessionId}/turns/{turn}', { params: { path } }));
    },
    enabled: id !== undefined,
  });

/** The answer of the model that judged. */
function Verdict({ sessionId }: { sessionId: string }) {
  const { data } = useTurn({ session_id: sessionId, turn: 1 });
  return <Plain text={data?.output ?? data?.error?.message ?? ''} />;
}

const TurnLink = ({ id, label }: { id: TurnId; label: string }) => (
  <SessionLink id={id.session_id} search={{ turn: id.turn }} className="text-primary underline">
    {label}
  </SessionLink>
);

const callsText = (calls: readonly Schema<'ToolCall'>[] | undefined): string =>
  (calls ?? [])
    .map(({ round, tool, ...call }) => `${round}. ${tool} ${call.arguments}\n→ ${call.result}\n`)
    .join('');

function Comparison({ turn, rules }: { turn: ReplayTurn; rules: readonly unknown[] }) {
  const { replay_session_id, replay_turn, outcome, code, diff, diff_omitted: omitted } = turn;
  const replayedId =
    replay_session_id && replay_turn
      ? { session_id: replay_session_id, turn: replay_turn }
      : undefined;
  const recorded = useTurn(turn);
  const replayed = useTurn(replayedId).data;
  const answers = { before: recorded.data?.output ?? '', after: replayed?.output ?? '' };
  const [before, after] = [callsText(recorded.data?.tool_calls), callsText(replayed?.tool_calls)];
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
      {recorded.error && <Alert title={recorded.error.message} />}
      <Card title="Input">
        <Plain text={recorded.data?.input ?? ''} />
      </Card>
      <Card title="Answer">
        {omitted && <p>The service shows no difference ({omitted.replace('_', ' ')}).</p>}
        {outcome === 'failed' && (
          <Alert title={`The replayed turn failed: ${code}`}>{replayed?.error?.message}</Alert>
        )}
        {outcome === 'skipped' && <p>The recorded turn has no answer, or was not begun again.</p>}
        {outcome === 'same' && <p>Both answers are the same.</p>}
        {outcome !== 'changed' && <Plain text={answers.before} />}
        {diff && <TextDiff labels={LABELS} parts={diff} />}
        {omitted && omitted !== 'erased' && <TextDiff labels={LABELS} {...answers} />}
      </Card>
      {(before || after) && (
        <Card title="Tool calls">
          {before === after ? (
            <Plain text={before} />
          ) : (
            <TextDiff labels={LABELS} before={before} after={after} />
          )}
        </Card>
      )}
      {turn.checks.length > 0 && (
        <Card>
          <DataTable
            caption="Checks"
            isTitled
            columns={['Check', 'Result', 'Reason']}
            rows={turn.checks.map(({ check, passed, code: reason, session_id }) => ({
              key: String(check),
              cells: [
                <code className="text-xs break-all">{JSON.stringify(rules[check])}</code>,
                <StatusBadge status={passed ? 'passed' : 'failed'} />,
                session_id ? <Verdict sessionId={session_id} /> : reason,
              ],
            }))}
          />
        </Card>
      )}
      <BeforeAfter before={turn.recorded} after={turn.replayed} />
      <Facts
        facts={[
          ['Recorded', <TurnLink id={turn} label="Recorded turn" />],
          replayedId && ['Replayed', <TurnLink id={replayedId} label="Replayed turn" />],
          ['Models', `${turn.recorded.model} → ${turn.replayed?.model ?? '–'}`],
          ['Request', turn.requests === 'same' ? 'the same bytes' : 'not the same bytes'],
        ]}
      />
    </div>
  );
}

/** One compared turn. `j` and `k` go to its neighbours in the list, Escape to the list. */
export function ReplayTurnView(props: { replay: ShownReplay; id: TurnId; filter: TurnFilter }) {
  const { replay, id, filter } = props;
  const { replay_id: replayId, settings } = replay;
  const navigate = useNavigate();
  const query = useQuery(comparedTurnQuery(replayId, id));
  const { data: listed = [] } = useInfiniteQuery(turnsQuery(replayId, filter));
  const at = listed.findIndex((each) => formatTurnId(each) === formatTurnId(id));
  const neighbours: Record<string, TurnId | undefined> =
    at < 0 ? {} : { k: listed[at - 1], j: listed[at + 1] };
  const go = (to?: TurnId): void =>
    void navigate({
      to: '/replays/$replayId',
      params: { replayId },
      search: { only: filter, ...(to && { compared: formatTurnId(to) }) },
    });
  useKeyDown((event) => {
    if (!isForView(event)) return;
    if (event.key === 'Escape') go();
    if (neighbours[event.key]) go(neighbours[event.key]);
  });
  return (
    <View
      title={`Turn ${id.turn} of session …${id.session_id.slice(-8)}`}
      description={query.data && <StatusBadge status={query.data.outcome} />}
      actions={
        <>
          <Button variant="ghost" onClick={() => go()}>
            All turns
          </Button>
          {(['k', 'j'] as const).map((key) => (
            <Button key={key} disabled={!neighbours[key]} onClick={() => go(neighbours[key])}>
              {key === 'k' ? 'Previous' : 'Next'}
            </Button>
          ))}
        </>
      }
    >
      <Loaded query={query}>
        {(found) =>
          found ? (
            <Comparison turn={found} rules={settings.checks ?? []} />
          ) : (
            <EmptyState title="This turn was not compared">
              The replay has no such turn, or has not come to it yet.
            </EmptyState>
          )
        }
      </Loaded>
    </View>
  );
}
