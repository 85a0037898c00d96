import { useState } from 'react';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { TextAreaField } from '../components/Field.tsx';
import { Card } from '../components/layout.tsx';
import { Facts } from '../components/tables.tsx';
import { Time } from '../components/Time.tsx';
import { Hash } from './Hash.tsx';
import { pinCheckpoint, setStored, useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { readKeys } from './verify/notes.ts';

interface TextFormProps {
  label: string;
  hint: string;
  action: string;
  initial: string;
  /** Throws for a text that can’t be saved. */
  onSave: (text: string) => unknown;
}

function TextForm({ action, initial, onSave, ...field }: TextFormProps) {
  const [text, setText] = useState(initial);
  const [error, setError] = useState<string>();
  const save = async (): Promise<void> => {
    try {
      await onSave(text);
      setError(undefined);
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  return (
    <div className="grid gap-3">
      <TextAreaField
        className="font-mono text-xs"
        spellCheck={false}
        value={text}
        onValue={setText}
        error={error}
        {...field}
      />
      <Button
        variant="outline"
        className="justify-self-start"
        disabled={text === initial}
        onClick={() => void save()}
      >
        {action}
      </Button>
    </div>
  );
}

/** What the person trusts: a checkpoint and keys, kept in this browser. */
export function TrustCard() {
  const { stored, pinned } = useTrust();
  return (
    <Card aria-labelledby="trust-title" className="grid gap-4">
      <h2 id="trust-title" className="text-base font-semibold">
        What you trust
      </h2>
      {pinned && stored.pinned ? (
        <>
          <Facts
            className="md:grid-cols-2"
            facts={[
              ['Pinned', <Time key="at" value={stored.pinned.at} />],
              ['Events', pinned.size.toLocaleString()],
              ['Log', <Hash key="log">{pinned.origin}</Hash>],
              ['Root', <Hash key="root">{toBase64(pinned.root)}</Hash>],
            ]}
          />
          <div className="flex flex-wrap gap-1">
            <Button variant="outline" size="small" onClick={() => setStored({ pinned: undefined })}>
              Unpin
            </Button>
            <CopyButton text={pinned.note} label="Copy" />
          </div>
        </>
      ) : (
        <TextForm
          label="Pinned checkpoint"
          hint="Nothing is pinned. Pin the newest checkpoint, or paste one that was kept where the service’s operator can’t change it."
          action="Pin"
          initial=""
          onSave={(text) => pinCheckpoint(`${text.trim()}\n`)}
        />
      )}
      <TextForm
        label="Verifier keys"
        hint="One vkey a line, of the log and of witnesses. Take the log’s from its operator’s publication, not from this page: “npm run cli -- audit vkey” prints it."
        action="Save keys"
        initial={stored.keys}
        onSave={async (keys) => {
          await readKeys(keys);
          setStored({ keys });
        }}
      />
    </Card>
  );
}
