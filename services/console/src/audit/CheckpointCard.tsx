import { useQuery } from '@tanstack/react-query';
import { Pin } from 'lucide-react';
import { api, dataOf } from '../api/client.ts';
import { toCurl } from '../api/requestLog.ts';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Badge, Card, Skeleton } from '../components/layout.tsx';
import { EmptyState, ErrorState } from '../components/states.tsx';
import { Time } from '../components/Time.tsx';
import { Facts, Mono } from './parts.tsx';
import { CHECKPOINT_PATH, fetchCheckpoint, readTree } from './service.ts';
import { pinCheckpoint, useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch } from './verify/mismatch.ts';
import {
  cosignaturesOf,
  logKeyOf,
  requireSignature,
  type Checkpoint,
  type Cosignature,
} from './verify/notes.ts';
import { checkpointVerifier, type Trust } from './verify/verifySession.ts';

const REFRESH_MS = 10_000;

/** What this browser finds out about a checkpoint. */
interface Checked {
  /** Undefined when it has the right signature and extends the pinned checkpoint, if there is one. */
  problem: Mismatch | undefined;
  /** Undefined without a trusted key of the log. */
  isSigned: boolean | undefined;
  cosignatures: Cosignature[];
}

async function check(checkpoint: Checkpoint, trust: Trust): Promise<Checked> {
  const cosignatures = await cosignaturesOf(checkpoint, trust.keys);
  const logKey = logKeyOf(checkpoint, trust.keys);
  const isSigned =
    logKey &&
    (await requireSignature(checkpoint, logKey).then(
      () => true,
      () => false,
    ));
  try {
    const checkpoints = checkpointVerifier(trust, { readTree });
    checkpoints.requireNotShorter(checkpoint);
    await checkpoints.accept(checkpoint);
    return { problem: undefined, isSigned, cosignatures };
  } catch (error) {
    if (error instanceof Mismatch) return { problem: error, isSigned, cosignatures };
    throw error;
  }
}

interface Signer {
  name: string;
  id: string;
  role: string;
  tone: 'neutral' | 'success' | 'warning' | 'destructive';
  status: string;
  time?: string | undefined;
}

function signersOf(
  checkpoint: Checkpoint,
  trust: Trust,
  { isSigned, cosignatures }: Checked,
  missing: readonly string[],
): Signer[] {
  const logKey = logKeyOf(checkpoint, trust.keys);
  const signers = checkpoint.signatures.map(({ name, id }): Signer => {
    if (name === checkpoint.origin) {
      const isOwn = logKey?.id === id;
      if (!isOwn) return { name, id, role: 'Log', tone: 'neutral', status: 'Not checked: no key' };
      return isSigned
        ? { name, id, role: 'Log', tone: 'success', status: 'Valid' }
        : { name, id, role: 'Log', tone: 'destructive', status: 'Wrong' };
    }
    const trusted = cosignatures.find((each) => each.name === name && each.id === id);
    if (!trusted)
      return { name, id, role: 'Witness', tone: 'neutral', status: 'Not checked: no key' };
    return trusted.time === undefined
      ? { name, id, role: 'Witness', tone: 'destructive', status: 'Wrong' }
      : { name, id, role: 'Witness', tone: 'success', status: 'Valid', time: trusted.time };
  });
  const absent = cosignatures
    .filter(({ name, id }) => !signers.some((each) => each.name === name && each.id === id))
    .map(({ name, id }) => ({ name, id }));
  const configured = missing
    .filter((name) => !absent.some((each) => each.name === name))
    .map((name) => ({ name, id: '' }));
  return [
    ...signers,
    ...[...absent, ...configured].map(({ name, id }): Signer => ({
      name,
      id,
      role: 'Witness',
      tone: 'warning',
      status: 'Missing',
    })),
  ];
}

const SignerList = ({ signers }: { signers: readonly Signer[] }) => (
  <ul className="divide-y border-y">
    {signers.map(({ name, id, role, tone, status, time }) => (
      <li key={`${name}+${id}`} className="flex flex-wrap items-center gap-x-3 gap-y-1 py-2">
        <span className="w-14 shrink-0 text-muted-foreground">{role}</span>
        <span className="min-w-0 flex-1">
          <Mono>{name}</Mono>
          {id !== '' && <span className="text-xs text-muted-foreground"> key {id}</span>}
          {time !== undefined && (
            <span className="block text-xs text-muted-foreground">
              Cosigned <Time value={time} />
            </span>
          )}
        </span>
        <Badge tone={tone}>{status}</Badge>
      </li>
    ))}
  </ul>
);

/** The newest checkpoint, its signatures, and whether it extends the pinned one. */
export function CheckpointCard() {
  const { stored, pinned, trust } = useTrust();
  const newest = useQuery({
    queryKey: ['checkpoint'],
    queryFn: async () => (await fetchCheckpoint()) ?? null,
    refetchInterval: REFRESH_MS,
  });
  const health = useQuery({
    queryKey: ['health'],
    queryFn: () => dataOf(api.GET('/health/ready')),
    refetchInterval: REFRESH_MS,
  });
  const checkpoint = newest.data;
  const checked = useQuery({
    queryKey: ['checkpoint-check', checkpoint?.note, stored.pinned?.note, stored.keys],
    queryFn: () => check(checkpoint!, trust!),
    enabled: Boolean(checkpoint && trust),
    placeholderData: (previous) => previous,
    staleTime: Infinity,
  });
  const log = health.data?.transparency_log;
  return (
    <Card aria-labelledby="checkpoint-title" className="grid gap-4">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 id="checkpoint-title" className="text-base font-semibold">
          Newest checkpoint
        </h2>
        {checkpoint && (
          <div className="flex flex-wrap gap-1">
            <CopyButton text={checkpoint.note} label="Copy" />
            <CopyButton
              text={toCurl({
                method: 'GET',
                url: new URL(CHECKPOINT_PATH, location.origin).href,
                body: undefined,
                headers: {},
              })}
              label="Copy as curl"
            />
          </div>
        )}
      </div>
      {newest.isPending && <Skeleton className="h-52" />}
      {newest.isError && <ErrorState error={newest.error} onRetry={() => void newest.refetch()} />}
      {checkpoint === null && (
        <EmptyState title="No checkpoint yet">
          The log is signed about a second after its first event. Create an agent first.
        </EmptyState>
      )}
      {checkpoint && (
        <>
          <Facts
            facts={[
              ['Log', <Mono key="log">{checkpoint.origin}</Mono>],
              ['Events', <span key="size">{checkpoint.size.toLocaleString()}</span>],
              ['Root', <Mono key="root">{toBase64(checkpoint.root)}</Mono>],
              [
                'Signed',
                log?.signed_at && log.size === checkpoint.size ? (
                  <Time key="at" value={log.signed_at} />
                ) : (
                  '—'
                ),
              ],
            ]}
          />
          {trust && checked.data && (
            <SignerList
              signers={signersOf(checkpoint, trust, checked.data, log?.witnesses?.missing ?? [])}
            />
          )}
          {checked.isPending && <Skeleton className="h-10" />}
          {checked.isError && (
            <ErrorState error={checked.error} onRetry={() => void checked.refetch()} />
          )}
          <PinnedState problem={checked.data?.problem} pinned={pinned} checkpoint={checkpoint} />
          {log?.witnesses?.reason !== undefined && (
            <p className="text-warning">{log.witnesses.reason}</p>
          )}
          <Button
            variant="outline"
            className="justify-self-start"
            disabled={pinned?.note === checkpoint.note}
            onClick={() => pinCheckpoint(checkpoint.note)}
          >
            <Pin aria-hidden />{' '}
            {pinned?.note === checkpoint.note ? 'Pinned' : 'Pin this checkpoint'}
          </Button>
        </>
      )}
    </Card>
  );
}

function PinnedState({
  problem,
  pinned,
  checkpoint,
}: {
  problem: Mismatch | undefined;
  pinned: Checkpoint | undefined;
  checkpoint: Checkpoint;
}) {
  if (problem)
    return (
      <div role="alert" className="grid gap-1 rounded-md border border-destructive/60 p-3">
        <p className="font-medium text-destructive">{problem.message}</p>
        <p>{problem.details.meaning}</p>
      </div>
    );
  if (!pinned)
    return (
      <p className="text-muted-foreground">
        No checkpoint is pinned. Pin one now: later it shows that nothing before it was changed.
      </p>
    );
  const newer = checkpoint.size - pinned.size;
  return (
    <p>
      <span className="text-success">Extends the pinned checkpoint.</span>{' '}
      {newer === 0 ? 'No event is newer.' : `${newer.toLocaleString()} events are newer.`}
    </p>
  );
}
