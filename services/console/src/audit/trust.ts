import { useQuery } from '@tanstack/react-query';
import { useMemo, useSyncExternalStore } from 'react';
import { readCheckpoint, readKeys } from './verify/notes.ts';
import type { Trust } from './verify/verifySession.ts';

const NAME = 'turnlog.audit-trust';

/** What the person trusts, as this browser keeps it. `keys` has one vkey per line. */
interface StoredTrust {
  keys: string;
  pinned?: { note: string; at: string } | undefined;
}

const listeners = new Set<() => void>();
let current: StoredTrust | undefined;

function readStored(): StoredTrust {
  try {
    const stored = JSON.parse(localStorage.getItem(NAME)!) as StoredTrust;
    if (stored.pinned) readCheckpoint(stored.pinned.note);
    return stored;
  } catch {
    return { keys: '' };
  }
}

const getStored = (): StoredTrust => (current ??= readStored());

/** Keeps what the person trusts in this browser, beyond the tab. */
export function setStored(changes: Partial<StoredTrust>): void {
  current = { ...getStored(), ...changes };
  localStorage.setItem(NAME, JSON.stringify(current));
  for (const listener of listeners) listener();
}

/** Pins a checkpoint. Throws Mismatch for a text that is none. */
export function pinCheckpoint(note: string): void {
  readCheckpoint(note);
  setStored({ pinned: { note, at: new Date().toISOString() } });
}

const onStoredChange = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** What the person trusts, stored and parsed. `trust` is undefined while keys are parsed. */
export function useTrust() {
  const stored = useSyncExternalStore(onStoredChange, getStored);
  const note = stored.pinned?.note;
  const pinned = useMemo(() => (note === undefined ? undefined : readCheckpoint(note)), [note]);
  const { data: keys } = useQuery({
    queryKey: ['trusted-keys', stored.keys],
    // Keys are checked before they are stored; those that can't be read are not trusted.
    queryFn: () => readKeys(stored.keys).catch(() => []),
    staleTime: Infinity,
  });
  const trust: Trust | undefined = keys && { keys, pinned };
  return { stored, pinned, trust };
}
