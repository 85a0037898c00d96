import { useState } from 'react';
import { Button } from '../components/Button.tsx';
import { CopyButton } from '../components/CopyButton.tsx';
import { Field, Textarea } from '../components/Field.tsx';
import { Card } from '../components/layout.tsx';
import { Time } from '../components/Time.tsx';
import { Facts, Mono } from './parts.tsx';
import { pinCheckpoint, setStored, useTrust } from './trust.ts';
import { toBase64 } from './verify/bytes.ts';
import { readKeys } from './verify/notes.ts';

/** The pinned checkpoint, and a field for one that was kept elsewhere. */
function Pinned() {
  const { stored, pinned } = useTrust();
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();
  const pin = (): void => {
    try {
      pinCheckpoint(`${text.trim()}\n`);
      setText('');
      setError(undefined);
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  return (
    <div className="grid gap-3">
      {pinned && stored.pinned ? (
        <>
          <Facts
            facts={[
              ['Log', <Mono key="log">{pinned.origin}</Mono>],
              ['Events', pinned.size.toLocaleString()],
              ['Root', <Mono key="root">{toBase64(pinned.root)}</Mono>],
              ['Pinned', <Time key="at" value={stored.pinned.at} />],
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
        <p className="text-muted-foreground">
          Nothing is pinned. Pin the newest checkpoint, or paste one that was kept where the
          service’s operator can’t change it.
        </p>
      )}
      <details>
        <summary className="text-primary">Paste a checkpoint</summary>
        <div className="mt-3 grid gap-3">
          <Field label="Checkpoint" error={error} hint="A signed note, with its signature lines.">
            <Textarea
              className="font-mono text-xs"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </Field>
          <Button variant="outline" className="justify-self-start" onClick={pin}>
            Pin
          </Button>
        </div>
      </details>
    </div>
  );
}

function Keys() {
  const { stored } = useTrust();
  const [text, setText] = useState(stored.keys);
  const [error, setError] = useState<string>();
  const save = async (): Promise<void> => {
    try {
      await readKeys(text);
      setError(undefined);
      setStored({ keys: text });
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  return (
    <div className="grid gap-3">
      <Field
        label="Verifier keys"
        error={error}
        hint={
          <>
            One vkey a line, of the log and of witnesses. Take the log’s from its operator’s
            publication, not from this page: <code>npm run cli -- audit vkey</code> prints it.
          </>
        }
      >
        <Textarea
          className="font-mono text-xs"
          spellCheck={false}
          value={text}
          placeholder="turnlog/…+1a2b3c4d+…"
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
      <div className="flex items-center gap-3">
        <Button variant="outline" disabled={text === stored.keys} onClick={() => void save()}>
          Save keys
        </Button>
        <span aria-live="polite" className="text-muted-foreground">
          {text === stored.keys ? stored.keys !== '' && 'Saved in this browser.' : 'Not saved.'}
        </span>
      </div>
    </div>
  );
}

/** What the person trusts: a checkpoint and keys, kept in this browser. */
export const TrustCard = () => (
  <Card aria-labelledby="trust-title" className="grid gap-4">
    <h2 id="trust-title" className="text-base font-semibold">
      What you trust
    </h2>
    <h3 className="font-semibold">Pinned checkpoint</h3>
    <Pinned />
    <hr />
    <Keys />
  </Card>
);
