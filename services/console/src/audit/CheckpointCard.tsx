import { useQuery } from '@tanstack/react-query';
import { Pin } from 'lucide-react';
import { api, dataOf } from '../api/client.ts';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Badge, Card } from '../components/layout.tsx';
import { Alert, EmptyState, Loaded } from '../components/states.tsx';
import { DataTable, Facts } from '../components/tables.tsx';
import { Time } from '../components/Time.tsx';
import { Hash } from './Hash.tsx';
import { fetchCheckpoint, readTree } from './service.ts';
import { pinCheckpoint, useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch } from './verify/mismatch.ts';
import { cosignaturesOf, requireSignature, type Checkpoint } from './verify/notes.ts';
import { checkpointVerifier, type Trust } from './verify/verifySession.ts';

const REFRESH_MS = 10_000;
const TONES = {
  Valid: 'success',
  Wrong: 'destructive',
  Missing: 'warning',
  'Not checked: no key': 'neutral',
} as const;

interface Signer {
  name: string;
  status: keyof typeof TONES;
  time?: string | undefined;
}

/** The mismatch that a verification ends with; undefined without one. */
const mismatchOf = (verifying: Promise<void>): Promise<Mismatch | undefined> =>
  verifying.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Mismatch) return error;
      throw error;
    },
  );

/** Verifies the signatures of a checkpoint, and that it extends the pinned one. */
async function check(checkpoint: Checkpoint, trust: Trust) {
  const problem = await mismatchOf(checkpointVerifier(trust, readTree)(checkpoint));
  const key = trust.keys.find(({ kind, name }) => kind === 'log' && name === checkpoint.origin);
  const isWrong = key && (await mismatchOf(requireSignature(checkpoint, key)));
  const witnesses = await cosignaturesOf(checkpoint, trust.keys);
  const signers = checkpoint.signatures.map(({ name, id }): Signer => {
    if (key?.name === name && key.id === id) return { name, status: isWrong ? 'Wrong' : 'Valid' };
    const witness = witnesses.find((each) => each.name === name && each.id === id);
    if (!witness) return { name, status: 'Not checked: no key' };
    return { name, time: witness.time, status: witness.time === undefined ? 'Wrong' : 'Valid' };
  });
  return { problem, signers, trusted: witnesses.map(({ name }) => name) };
}

/** The newest checkpoint, its signatures, and whether it extends the pinned one. */
export function CheckpointCard() {
  const { stored, trust } = useTrust();
  const newest = useQuery({
    queryKey: ['checkpoint'],
    queryFn: fetchCheckpoint,
    refetchInterval: REFRESH_MS,
  });
  return (
    <Card aria-labelledby="checkpoint-title" className="grid gap-4">
      <h2 id="checkpoint-title" className="text-base font-semibold">
        Newest checkpoint
      </h2>
      <Loaded query={newest} skeleton="h-64">
        {(checkpoint) =>
          checkpoint === null ? (
            <EmptyState title="No checkpoint yet">
              The log is signed about a second after its first event. Create an agent first.
            </EmptyState>
          ) : (
            <>
              <Facts
                className="md:grid-cols-2"
                facts={[
                  ['Log', <Hash key="log">{checkpoint.origin}</Hash>],
                  ['Events', checkpoint.size.toLocaleString()],
                  ['Root', <Hash key="root">{toBase64(checkpoint.root)}</Hash>],
                ]}
              />
              {trust && <Signers checkpoint={checkpoint} trust={trust} />}
              <div className="flex flex-wrap gap-1">
                <Button
                  variant="outline"
                  size="small"
                  disabled={stored.pinned?.note === checkpoint.note}
                  onClick={() => pinCheckpoint(checkpoint.note)}
                >
                  <Pin aria-hidden /> Pin this checkpoint
                </Button>
                <CopyButton text={checkpoint.note} label="Copy" />
              </div>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Who signed a checkpoint, who did not, and whether it extends the pinned one. */
function Signers({ checkpoint, trust }: { checkpoint: Checkpoint; trust: Trust }) {
  const { pinned } = trust;
  const health = useQuery({
    queryKey: ['health'],
    queryFn: () => dataOf(api.GET('/health/ready')),
    refetchInterval: REFRESH_MS,
  });
  const checked = useQuery({
    queryKey: ['checkpoint-check', checkpoint.note, pinned?.note, trust.keys.map(({ id }) => id)],
    queryFn: () => check(checkpoint, trust),
    placeholderData: (previous) => previous,
    staleTime: Infinity,
  });
  const { missing = [], reason } = health.data?.transparency_log?.witnesses ?? {};
  return (
    <Loaded query={checked}>
      {({ problem, signers, trusted }) => {
        const absent = [...new Set([...trusted, ...missing])]
          .filter((name) => !signers.some((signer) => signer.name === name))
          .map((name): Signer => ({ name, status: 'Missing' }));
        return (
          <>
            <DataTable
              caption="Signatures"
              columns={['Signer', 'Role', 'Signature', 'Cosigned']}
              rows={[...signers, ...absent].map(({ name, status, time }) => ({
                key: name,
                cells: [
                  <Hash key="name">{name}</Hash>,
                  name === checkpoint.origin ? 'Log' : 'Witness',
                  <Badge key="status" tone={TONES[status]}>
                    {status}
                  </Badge>,
                  time !== undefined && <Time key="time" value={time} />,
                ],
              }))}
            />
            {reason !== undefined && <p className="text-warning">{reason}</p>}
            {problem ? (
              <Alert title={problem.message}>{problem.details.meaning}</Alert>
            ) : pinned ? (
              <p className="text-success">
                It extends the pinned checkpoint by {checkpoint.size - pinned.size} events.
              </p>
            ) : (
              <p className="text-muted-foreground">
                Pin a checkpoint now: later it shows that nothing before it was changed.
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
