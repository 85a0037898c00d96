import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { ArrowLeft, Check, ChevronLeft, ChevronRight, X } from 'lucide-react';
import { useEffect, useEffectEvent, type ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { formatCount } from '../components/charts/ChartFrame.tsx';
import { Badge, Card, Skeleton, View } from '../components/layout.tsx';
import { Alert, EmptyState, ErrorState } from '../components/states.tsx';
import { TextDiff } from '../components/TextDiff.tsx';
import { isTyping } from '../shell/useShortcuts.ts';
import { endOfId, OutcomeBadge } from './describe.tsx';
import { pairToolCalls, type CallPair } from './pairToolCalls.ts';
import { describeCheck, formatMs } from './ReplaySummary.tsx';
import {
  comparedTurnQuery,
  transcriptTurnQuery,
  turnsQuery,
  type ReplayTurn,
  type ShownReplay,
} from './replayQueries.ts';
import { formatTurnId, type TurnFilter, type TurnId } from './search.ts';

type ToolCall = Schema<'ToolCall'>;
type Side = ReplayTurn['recorded'];

const LABELS = ['Recorded', 'Replayed'] as const;

const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className="grid grid-cols-[minmax(0,1fr)] gap-2">
    <h2 className="font-medium">{title}</h2>
    {children}
  </section>
);

const Text = ({ text }: { text: string }) => (
  <p
    className="max-h-80 overflow-y-auto rounded-md border bg-card p-3 break-words whitespace-pre-wrap"
    tabIndex={0}
  >
    {text}
  </p>
);

/** JSON with a line per member, so that differences are told apart; other texts as they are. */
function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function CallDifference({ recorded, replayed }: CallPair<ToolCall>) {
  const call = (recorded ?? replayed)!;
  const isSame =
    recorded?.arguments === replayed?.arguments && recorded?.result === replayed?.result;
  const [label, tone] = !replayed
    ? (['Missing', 'warning'] as const)
    : !recorded
      ? (['Added', 'warning'] as const)
      : isSame
        ? (['Same', 'success'] as const)
        : (['Changed', 'warning'] as const);
  return (
    <details open={!isSame} className="rounded-md border bg-card p-3">
      <summary className="cursor-pointer">
        <code>{call.tool}</code>{' '}
        <span className="text-xs text-muted-foreground">round {call.round}</span>{' '}
        <Badge tone={tone}>{label}</Badge>
      </summary>
      <div className="mt-3 grid grid-cols-[minmax(0,1fr)] gap-3">
        {(['arguments', 'result'] as const).map((part) => (
          <div key={part} className="grid grid-cols-[minmax(0,1fr)] gap-1">
            <h3 className="text-xs text-muted-foreground first-letter:uppercase">{part}</h3>
            {isSame ? (
              <pre className="overflow-x-auto text-xs" tabIndex={0}>
                {indentJson(call[part])}
              </pre>
            ) : (
              <TextDiff
                labels={LABELS}
                before={indentJson(recorded?.[part] ?? '')}
                after={indentJson(replayed?.[part] ?? '')}
              />
            )}
          </div>
        ))}
      </div>
    </details>
  );
}

/** The verdict of a judge is the answer of its session. */
function Verdict({ sessionId }: { sessionId: string }) {
  const { data, error } = useQuery(transcriptTurnQuery({ session_id: sessionId, turn: 1 }));
  return (
    <div className="grid gap-1 text-xs">
      {data && (
        <p className="break-words whitespace-pre-wrap">{data.output ?? data.error?.message}</p>
      )}
      {error && <p className="text-muted-foreground">{error.message}</p>}
      <Link
        to="/sessions/$sessionId"
        params={{ sessionId }}
        className="justify-self-start py-1 text-primary hover:underline"
      >
        Session of the judge
      </Link>
    </div>
  );
}

type Checks = NonNullable<ShownReplay['settings']['checks']>;

const CheckResults = ({ turn, checks }: { turn: ReplayTurn; checks: Checks }) => (
  <ul className="divide-y rounded-md border bg-card">
    {turn.checks.map(({ check, passed, code, session_id }) => (
      <li key={check} className="flex gap-3 p-3">
        <Badge tone={passed ? 'success' : 'destructive'} className="self-start">
          {passed ? <Check aria-hidden className="size-3" /> : <X aria-hidden className="size-3" />}
          {passed ? 'Passed' : 'Failed'}
        </Badge>
        <div className="grid min-w-0 gap-1">
          <p className="break-words">
            {checks[check] ? describeCheck(checks[check]) : `Check ${check}`}
          </p>
          {code !== undefined && <code className="text-xs">{code}</code>}
          {session_id !== undefined && <Verdict sessionId={session_id} />}
        </div>
      </li>
    ))}
  </ul>
);

const formatTokens = ({ tokens }: Side): string =>
  tokens
    ? `${formatCount(tokens.prompt)} + ${formatCount(tokens.completion)} = ${formatCount(tokens.total)}`
    : '–';

/** What the turn took, recorded and replayed. */
function Measures({ turn: { recorded, replayed, requests } }: { turn: ReplayTurn }) {
  const rows = [
    ['Model', ({ model }: Side) => model],
    ['Tokens', formatTokens],
    [
      'Latency',
      ({ duration_ms }: Side) => (duration_ms === undefined ? '–' : formatMs(duration_ms)),
    ],
    ['Cost', ({ cost }: Side) => (cost ? `${cost.amount} ${cost.currency}` : '–')],
  ] as const;
  return (
    <Card className="p-3">
      <table className="w-full text-xs tabular-nums">
        <thead>
          <tr className="text-left text-muted-foreground">
            <td />
            {LABELS.map((label) => (
              <th key={label} scope="col" className="py-1 font-medium">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, textOf]) => (
            <tr key={name} className="border-t align-top">
              <th scope="row" className="py-1 pr-4 text-left font-normal text-muted-foreground">
                {name}
              </th>
              <td className="py-1 pr-4 break-words">{textOf(recorded)}</td>
              <td className="py-1 break-words">{replayed ? textOf(replayed) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {requests && (
        <p className="mt-2 text-xs text-muted-foreground">
          {requests === 'same'
            ? 'The model was sent the same bytes.'
            : 'The model was sent another request.'}
        </p>
      )}
    </Card>
  );
}

const OMITTED = {
  erased: 'A session was erased, and its text with it.',
  too_long: 'The service does not compare texts of this length. This is what your browser finds.',
  too_different: 'The texts have little in common. This is what your browser finds.',
} as const;

interface OutputProps {
  turn: ReplayTurn;
  recorded: Schema<'Turn'> | undefined;
  replayed: Schema<'Turn'> | undefined;
}

/** The answers, and what differs between them. */
function Output({ turn, recorded, replayed }: OutputProps) {
  const { outcome, code, diff, diff_omitted } = turn;
  if (diff) return <TextDiff labels={LABELS} parts={diff} />;
  const texts = { before: recorded?.output ?? '', after: replayed?.output ?? '' };
  if (diff_omitted)
    return (
      <>
        <p className="text-muted-foreground">{OMITTED[diff_omitted]}</p>
        {diff_omitted !== 'erased' && recorded && replayed && (
          <TextDiff labels={LABELS} {...texts} />
        )}
      </>
    );
  if (outcome === 'same')
    return (
      <>
        <p className="text-muted-foreground">Both answers are the same.</p>
        {recorded?.output && <Text text={recorded.output} />}
      </>
    );
  return (
    <>
      {outcome === 'failed' ? (
        <Alert title={`The replayed turn failed: ${code ?? 'unknown'}`}>
          {replayed?.error && <p className="break-words">{replayed.error.message}</p>}
        </Alert>
      ) : (
        <p className="text-muted-foreground">
          The turn was skipped: the recorded turn has no answer, or its replay did not begin again.
        </p>
      )}
      {recorded?.output && (
        <>
          <p className="text-xs text-muted-foreground">Recorded answer</p>
          <Text text={recorded.output} />
        </>
      )}
    </>
  );
}

const SessionLink = ({ id, children }: { id: TurnId; children: ReactNode }) => (
  <Button variant="outline" size="small" asChild>
    <Link
      to="/sessions/$sessionId"
      params={{ sessionId: id.session_id }}
      search={{ turn: id.turn }}
    >
      {children}
    </Link>
  </Button>
);

function Comparison({ turn, checks }: { turn: ReplayTurn; checks: Checks }) {
  const recorded = useQuery(transcriptTurnQuery(turn));
  const { replay_session_id, replay_turn } = turn;
  const replayedId =
    replay_session_id !== null && replay_turn !== undefined
      ? { session_id: replay_session_id, turn: replay_turn }
      : undefined;
  const replayed = useQuery({
    ...transcriptTurnQuery(replayedId ?? turn),
    enabled: replayedId !== undefined,
  });
  const replayedTurn = replayedId && replayed.data;
  const pairs = pairToolCalls(recorded.data?.tool_calls ?? [], replayedTurn?.tool_calls ?? []);
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <SessionLink id={turn}>Recorded turn</SessionLink>
        {replayedId && <SessionLink id={replayedId}>Replayed turn</SessionLink>}
      </div>
      {recorded.data && (
        <Section title="Input">
          <Text text={recorded.data.input} />
        </Section>
      )}
      {recorded.isPending && <Skeleton className="h-20" />}
      {recorded.error && <Alert title={recorded.error.message} />}
      <Section title="Answer">
        <Output turn={turn} recorded={recorded.data} replayed={replayedTurn} />
      </Section>
      {pairs.length > 0 && (
        <Section title="Tool calls">
          {pairs.map((pair, at) => (
            <CallDifference key={at} {...pair} />
          ))}
        </Section>
      )}
      {turn.checks.length > 0 && (
        <Section title="Checks">
          <CheckResults turn={turn} checks={checks} />
        </Section>
      )}
      <Section title="Before and after">
        <Measures turn={turn} />
      </Section>
    </>
  );
}

interface ReplayTurnViewProps {
  replay: Omit<ShownReplay, 'turns'>;
  id: TurnId;
  filter: TurnFilter;
}

/** One compared turn. `j` and `k` go to its neighbours in the list, Escape to the list. */
export function ReplayTurnView({ replay, id, filter }: ReplayTurnViewProps) {
  const { replay_id: replayId } = replay;
  const navigate = useNavigate();
  const { data: turn, error, refetch } = useQuery(comparedTurnQuery(replayId, id));
  const listed = useInfiniteQuery(turnsQuery(replayId, filter)).data?.pages.flatMap(
    ({ rows }) => rows,
  );
  const at = listed?.findIndex((each) => formatTurnId(each) === formatTurnId(id)) ?? -1;
  const neighbours = {
    k: at > 0 ? listed![at - 1] : undefined,
    j: at < 0 ? undefined : listed![at + 1],
  };
  const only = filter === 'changed' ? {} : { only: filter };
  const go = (to: TurnId | undefined): void =>
    void navigate({
      to: '/replays/$replayId',
      params: { replayId },
      search: { ...only, ...(to && { turn: formatTurnId(to) }) },
    });
  const handle = useEffectEvent((event: KeyboardEvent) => {
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') go(undefined);
    const neighbour = event.key === 'j' || event.key === 'k' ? neighbours[event.key] : undefined;
    if (neighbour) go(neighbour);
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => handle(event);
    addEventListener('keydown', listen);
    return () => removeEventListener('keydown', listen);
  }, []);
  return (
    <View
      title={
        <span className="flex flex-wrap items-center gap-2">
          Turn {id.turn} of session {endOfId(id.session_id)}
          {turn && <OutcomeBadge outcome={turn.outcome} />}
        </span>
      }
      description={
        <Link
          to="/replays/$replayId"
          params={{ replayId }}
          search={only}
          className="inline-flex items-center gap-1 text-primary hover:underline"
        >
          <ArrowLeft className="size-4" aria-hidden /> All turns of the replay
        </Link>
      }
      actions={
        <>
          <Button
            variant="outline"
            size="small"
            disabled={!neighbours.k}
            onClick={() => go(neighbours.k)}
          >
            <ChevronLeft aria-hidden /> Previous
          </Button>
          <Button
            variant="outline"
            size="small"
            disabled={!neighbours.j}
            onClick={() => go(neighbours.j)}
          >
            Next <ChevronRight aria-hidden />
          </Button>
        </>
      }
      className="grid grid-cols-[minmax(0,1fr)] content-start gap-5"
    >
      {error && !turn && <ErrorState error={error} onRetry={() => void refetch()} />}
      {turn === undefined && !error && <Skeleton className="h-64" />}
      {turn === null && (
        <EmptyState title="This turn was not compared">
          The replay has no such turn, or has not come to it yet.
        </EmptyState>
      )}
      {turn && <Comparison turn={turn} checks={replay.settings.checks ?? []} />}
    </View>
  );
}
