import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState, type FormEvent } from 'react';
import { api, apiFetch, dataOf } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Field, Input } from '../components/Field.tsx';
import { Badge, Card, Skeleton } from '../components/layout.tsx';
import { ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { Facts, Mono } from './parts.tsx';
import { readTree } from './service.ts';
import { useTrust } from './trust.ts';
import {
  MismatchReport,
  SignatureStatement,
  Statement,
  WitnessStatement,
} from './VerificationResult.tsx';
import { Mismatch } from './verify/mismatch.ts';
import { verifyReceiptOf } from './verify/verifyFiles.ts';

const SUBJECT_ID = /^(agent|replay|session|webhook)_[0-9a-hjkmnp-tv-z]{26}$/;

const PAGE = 100;

interface ErasedEvent {
  id: string;
  time: string;
  data: { session_id?: string; agent_id?: string; reason: string };
}

interface ErasedPage {
  rows: ErasedEvent[];
  next: string | undefined;
}

/** A page of the recorded erasures of sessions and agents, oldest first. */
async function fetchErasures(after: string | undefined): Promise<ErasedPage> {
  const url = new URL('/v1/events', location.origin);
  url.search = new URLSearchParams({
    format: 'jsonl',
    limit: String(PAGE),
    types: 'turnlog.session.erased.v1,turnlog.agent.erased.v1',
    ...(after !== undefined && { after }),
  }).toString();
  const response = await apiFetch(new Request(url));
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  const [, next] = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
  const cursor = next && new URL(next, location.origin).searchParams.get('after');
  return {
    rows: lines.map((line) => JSON.parse(line) as ErasedEvent),
    // A page of a feed always has a next one. The one after a page that is not full is empty.
    next: lines.length === PAGE && cursor ? cursor : undefined,
  };
}

function Erasures({ onSelect }: { onSelect: (subjectId: string) => void }) {
  const erasures = useInfiniteQuery({
    queryKey: ['erasures'],
    queryFn: ({ pageParam }) => fetchErasures(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next,
  });
  if (erasures.isPending) return <Skeleton className="h-20" />;
  if (erasures.isError)
    return <ErrorState error={erasures.error} onRetry={() => void erasures.refetch()} />;
  const rows = erasures.data.pages.flatMap((page) => page.rows);
  if (rows.length === 0)
    return <p className="text-muted-foreground">No session or agent of this account was erased.</p>;
  return (
    <div className="grid gap-2">
      <ul className="max-h-72 divide-y overflow-y-auto border-y">
        {rows.map(({ id, time, data }) => {
          const subject = data.session_id ?? data.agent_id ?? '';
          return (
            <li key={id} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
              <button
                type="button"
                className="text-left text-primary hover:underline"
                onClick={() => onSelect(subject)}
              >
                <Mono>{subject}</Mono>
              </button>
              <Badge>{data.reason}</Badge>
              <Time value={time} className="ml-auto text-xs text-muted-foreground" />
            </li>
          );
        })}
      </ul>
      {erasures.hasNextPage && (
        <Button
          variant="outline"
          size="small"
          className="justify-self-start"
          disabled={erasures.isFetchingNextPage}
          onClick={() => void erasures.fetchNextPage()}
        >
          Show more
        </Button>
      )}
    </div>
  );
}

function Receipt({ subjectId }: { subjectId: string }) {
  const { stored, trust } = useTrust();
  const receipt = useQuery({
    queryKey: ['receipt', subjectId],
    queryFn: () => dataOf(api.GET('/v1/erasures/{subjectId}', { params: { path: { subjectId } } })),
    staleTime: Infinity,
  });
  const checked = useQuery({
    queryKey: ['receipt-check', subjectId, stored.pinned?.note, stored.keys],
    queryFn: async () => {
      try {
        return await verifyReceiptOf(receipt.data!, { subjectId, trust: trust!, readTree });
      } catch (error) {
        if (error instanceof Mismatch) return error;
        throw error;
      }
    },
    enabled: Boolean(receipt.data && trust),
    staleTime: Infinity,
  });
  if (receipt.isError)
    return <ErrorState error={receipt.error} onRetry={() => void receipt.refetch()} />;
  if (checked.isError)
    return <ErrorState error={checked.error} onRetry={() => void checked.refetch()} />;
  if (!receipt.data || !checked.data) return <Skeleton className="h-40" />;
  if (checked.data instanceof Mismatch) return <MismatchReport error={checked.data} />;
  const { event, events, leaf, subject } = receipt.data;
  const { data, metadata } = event;
  const { checkpoint, signedBy, cosignatures } = checked.data;
  return (
    <div className="grid gap-3">
      <Facts
        facts={[
          ['Erased', <Mono key="s">{subject.id}</Mono>],
          ['Kind', subject.kind],
          ['Events before', events.toLocaleString()],
          ['Reason', String((data as { reason?: string }).reason ?? '—')],
          ['Note', String((data as { note?: string }).note ?? '—')],
          ['By key', <Mono key="k">{metadata.key_id}</Mono>],
          ['Time', <Time key="t" value={metadata.recorded_at} />],
        ]}
      />
      <ul className="divide-y border-y">
        <Statement isProven title="Inclusion">
          The erasure is in the log under the checkpoint of {checkpoint.size.toLocaleString()}{' '}
          events, as leaf {leaf.index.toLocaleString()}.
        </Statement>
        <SignatureStatement signedBy={signedBy} origin={checkpoint.origin} />
        <WitnessStatement cosignatures={cosignatures} />
      </ul>
      <p className="text-muted-foreground">
        No receipt can show that no copy of the key remains in a backup.
      </p>
      <div>
        <CopyButton text={JSON.stringify(receipt.data)} label="Copy receipt" />
      </div>
    </div>
  );
}

interface ReceiptCardProps {
  /** From the address. */
  subjectId: string | undefined;
  onSelect: (subjectId: string) => void;
}

/** The receipt of an erasure, and whether it holds. */
export function ReceiptCard({ subjectId, onSelect }: ReceiptCardProps) {
  const [text, setText] = useState(subjectId ?? '');
  const [error, setError] = useState<string>();
  const [isListed, setListed] = useState(false);
  useEffect(() => setText(subjectId ?? ''), [subjectId]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const id = text.trim();
    const isId = SUBJECT_ID.test(id);
    setError(isId ? undefined : 'Enter the id of a session, an agent, a replay or a webhook.');
    if (isId) onSelect(id);
  };
  return (
    <Card aria-labelledby="receipt-title" className="grid gap-4 lg:col-span-2">
      <div>
        <h2 id="receipt-title" className="text-base font-semibold">
          Erasure receipts
        </h2>
        <p className="text-muted-foreground">
          A receipt states what was erased, by whom, when and why, and proves that the log has it.
        </p>
      </div>
      <form onSubmit={submit} className="flex flex-wrap items-start gap-x-3 gap-y-4">
        <div className="min-w-0 flex-1 basis-72">
          <Field label="Erased subject" error={error} hint="The id of what was erased.">
            <Input
              className="font-mono"
              placeholder="session_…"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
        </div>
        <div className="flex flex-wrap gap-2 sm:mt-6.5">
          <Button type="submit">Get receipt</Button>
          <Button variant="outline" onClick={() => setListed(!isListed)}>
            {isListed ? 'Hide erasures' : 'List erasures'}
          </Button>
        </div>
      </form>
      {isListed && <Erasures onSelect={onSelect} />}
      {subjectId !== undefined && SUBJECT_ID.test(subjectId) && <Receipt subjectId={subjectId} />}
    </Card>
  );
}
