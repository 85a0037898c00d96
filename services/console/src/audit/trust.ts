import { useQuery, useQueryClient } from '@tanstack/react-query';
import { readCheckpoint, readKeys } from './verify/notes.ts';
import type { Trust } from './verify/verifySession.ts';

const NAME = 'turnlog.audit-trust';
const queryKey = ['audit-trust'];

/** The trusted checkpoint and keys, as this browser keeps them. `keys` has one vkey per line. */
interface StoredTrust {
  keys: string;
  pinned?: { note: string; at: string } | undefined;
}

/** Reads the stored trust, as text and parsed. Unreadable parts are not trusted. */
async function readTrust(): Promise<{ stored: StoredTrust; trust: Trust }> {
  try {
    const stored = JSON.parse(localStorage.getItem(NAME)!) as StoredTrust;
    const pinned = stored.pinned && readCheckpoint(stored.pinned.note);
    return { stored, trust: { keys: await readKeys(stored.keys), pinned } };
  } catch {
    return { stored: { keys: '' }, trust: { keys: [] } };
  }
}

/** The trusted checkpoint and keys, undefined while they are read, and a function to change them. */
export function useTrust() {
  const queryClient = useQueryClient();
  const { data } = useQuery({ queryKey, queryFn: readTrust, staleTime: Infinity });
  const save = async (changes: Partial<StoredTrust>): Promise<void> => {
    localStorage.setItem(NAME, JSON.stringify({ ...data?.stored, ...changes }));
    await queryClient.invalidateQueries({ queryKey });
  };
  /** Pins a checkpoint. Throws Mismatch for a text that is none. */
  const pin = async (note: string): Promise<void> => {
    readCheckpoint(note);
    await save({ pinned: { note, at: new Date().toISOString() } });
  };
  return { ...data, save, pin };
}
