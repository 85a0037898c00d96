import { useMutation, useQuery } from '@tanstack/react-query';
import { Pin } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { Button, CopyButton } from '../components/Button.tsx';
import { TextAreaField } from '../components/Field.tsx';
import { Alert, Badge, Card, DataTable, Facts, Loaded, Time } from '../components/view.tsx';
import { fetchCheckpoint, readTree } from './service.ts';
import { useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { Mismatch } from './verify/mismatch.ts';
import { readKeys, signersOf, type Checkpoint } from './verify/notes.ts';
import { checkpointVerifier, type Trust } from './verify/verifySession.ts';

const REFRESH_MS = 10_000;
const TONES = {
  Valid: 'success',
  Wrong: 'destructive',
  Missing: 'warning',
  'Not checked: no key': 'neutral',
} as const;

/** A hash, a key or an id, which breaks where the line ends. */
export const Hash = ({ children }: { children: string }) => (
  <code className="text-xs break-all">{children}</code>
);

interface CheckpointFactsProps {
  checkpoint: Checkpoint;
  pinnedAt?: string | undefined;
  /** Buttons beside that for a copy. */
  children: ReactNode;
}

const CheckpointFacts = ({ checkpoint, pinnedAt, children }: CheckpointFactsProps) => (
  <>
    <Facts
      className="md:grid-cols-2"
      facts={[
        pinnedAt !== undefined && ['Pinned', <Time value={pinnedAt} />],
        ['Log', <Hash>{checkpoint.origin}</Hash>],
        ['Events', checkpoint.size.toLocaleString()],
        ['Root', <Hash>{toBase64(checkpoint.root)}</Hash>],
      ]}
    />
    <div className="flex flex-wrap gap-1">
      {children}
      <CopyButton text={checkpoint.note} label="Copy" />
    </div>
  </>
);

/** Verifies the signatures of a checkpoint, and that it extends the pinned one. */
async function check(checkpoint: Checkpoint, trust: Trust) {
  const signers = await signersOf(checkpoint, trust.keys);
  try {
    await checkpointVerifier(trust, readTree)(checkpoint);
    return { signers };
  } catch (problem) {
    if (problem instanceof Mismatch) return { signers, problem };
    throw problem;
  }
}

/** Who signed a checkpoint, who did not, and whether it extends the pinned one. */
function Signers({ checkpoint, trust }: { checkpoint: Checkpoint; trust: Trust }) {
  const { pinned, keys } = trust;
  const checked = useQuery({
    queryKey: ['checkpoint-check', checkpoint.note, pinned?.note, keys.map(({ id }) => id)],
    queryFn: () => check(checkpoint, trust),
    placeholderData: (previous) => previous,
    staleTime: Infinity,
  });
  return (
    <Loaded query={checked}>
      {({ problem, signers }) => (
        <>
          <DataTable
            caption="Signatures"
            columns={['Signer', 'Role', 'Signature', 'Cosigned']}
            rows={signers.map(({ name, role, status, time }) => ({
              key: `${name} ${status}`,
              cells: [
                <Hash>{name}</Hash>,
                role,
                <Badge tone={TONES[status]}>{status}</Badge>,
                time !== undefined && <Time value={time} />,
              ],
            }))}
          />
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
      )}
    </Loaded>
  );
}

/** The newest checkpoint, its signatures, and whether it extends the pinned one. */
export function CheckpointCard() {
  const { stored, trust, pin } = useTrust();
  const newest = useQuery({
    queryKey: ['checkpoint'],
    queryFn: fetchCheckpoint,
    refetchInterval: REFRESH_MS,
  });
  return (
    <Card title="Newest checkpoint">
      <Loaded query={newest} skeleton="h-64">
        {(checkpoint) =>
          checkpoint === null ? (
            <p className="text-muted-foreground">
              No checkpoint yet. The log is signed about a second after its first event. Create an
              agent first.
            </p>
          ) : (
            <>
              {trust && <Signers checkpoint={checkpoint} trust={trust} />}
              <CheckpointFacts checkpoint={checkpoint}>
                <Button
                  size="small"
                  disabled={stored?.pinned?.note === checkpoint.note}
                  onClick={() => void pin(checkpoint.note)}
                >
                  <Pin aria-hidden /> Pin this checkpoint
                </Button>
              </CheckpointFacts>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

interface TextFormProps {
  label: string;
  hint: string;
  action: string;
  initial: string;
  /** Throws for a text that can’t be saved. */
  onSave: (text: string) => Promise<void>;
}

function TextForm({ action, initial, onSave, ...field }: TextFormProps) {
  const [text, setText] = useState(initial);
  const { mutate, error } = useMutation({ mutationFn: onSave });
  return (
    <>
      <TextAreaField
        className="font-mono text-xs"
        spellCheck={false}
        value={text}
        onValue={setText}
        error={error?.message}
        {...field}
      />
      <Button
        className="justify-self-start"
        disabled={text === initial}
        onClick={() => mutate(text)}
      >
        {action}
      </Button>
    </>
  );
}

/** The checkpoint and the keys that the person trusts, kept in this browser. */
export function TrustCard() {
  const { stored, trust, save, pin } = useTrust();
  return (
    <Card title="What you trust">
      {trust?.pinned ? (
        <CheckpointFacts checkpoint={trust.pinned} pinnedAt={stored?.pinned?.at}>
          <Button size="small" onClick={() => void save({ pinned: undefined })}>
            Unpin
          </Button>
        </CheckpointFacts>
      ) : (
        <TextForm
          label="Pinned checkpoint"
          hint="Nothing is pinned. Pin the newest checkpoint, or paste one that was kept where the service’s operator can’t change it."
          action="Pin"
          initial=""
          onSave={(text) => pin(`${text.trim()}\n`)}
        />
      )}
      {stored && (
        <TextForm
          label="Verifier keys"
          hint="One vkey a line, of the log and of witnesses. Take the log’s from its operator’s publication, not from this page: “npm run cli -- audit vkey” prints it."
          action="Save keys"
          initial={stored.keys}
          onSave={(keys) => readKeys(keys).then(() => save({ keys }))}
        />
      )}
    </Card>
  );
}
