/** Reads what is verified from the service. */
import { ApiError } from '../api/apiError.ts';
import { api, apiFetch } from '../api/client.ts';
import { fromBase64Hash, type Bytes } from './verify/bytes.ts';
import { unreadable } from './verify/mismatch.ts';
import { readCheckpoint, type Checkpoint } from './verify/notes.ts';
import { readLeafEvent, tileHashes } from './verify/tiles.ts';
import type { EventProof, ReadLeaf, ReadTree, SessionSource } from './verify/verifySession.ts';

const PAGE_EVENTS = 500;
const PROOF_ATTEMPTS = 5;
const PROOF_WAIT_MS = 1_000;

export const CHECKPOINT_PATH = '/v1/log/checkpoint';

/** The newest checkpoint of the service's log, undefined before the first one. */
export async function fetchCheckpoint(): Promise<Checkpoint | undefined> {
  try {
    const response = await apiFetch(new Request(new URL(CHECKPOINT_PATH, location.origin)));
    return readCheckpoint(await response.text());
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function fetchTile(path: string): Promise<Bytes | undefined> {
  try {
    const response = await apiFetch(new Request(new URL(`/v1/log/${path}`, location.origin)));
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Reads the hashes of the service's log. */
export const readTree: ReadTree = (size) => tileHashes(size, fetchTile);

/** Reads the hash of the event that the service’s log has at a leaf. */
export const readLeaf: ReadLeaf = (leaf, size) => readLeafEvent(leaf, size, fetchTile);

const query = (after: number | undefined) => ({
  limit: PAGE_EVENTS,
  ...(after !== undefined && { after }),
});

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A page of a session's proof. Waits for the log to cover its last event. */
async function fetchProof(sessionId: string, after: number | undefined, signal: AbortSignal) {
  for (let attempt = 1; ; attempt += 1)
    try {
      const params = { path: { sessionId }, query: query(after) };
      const { data } = await api.GET('/v1/sessions/{sessionId}/proof', { params, signal });
      return data!.data;
    } catch (error) {
      const isPending = error instanceof ApiError && error.code === 'proof_pending';
      if (!isPending || attempt === PROOF_ATTEMPTS) throw error;
      await wait(PROOF_WAIT_MS);
    }
}

/** The events of a session with their texts, which its proof omits. */
async function* fetchEvents(sessionId: string, signal: AbortSignal): AsyncGenerator<unknown, void> {
  for (let after: number | undefined; ;) {
    const params = { path: { sessionId }, query: query(after) };
    const { data } = await api.GET('/v1/sessions/{sessionId}/events', { params, signal });
    const events = data!.data;
    if (events.length === 0) return;
    yield* events;
    after = events.at(-1)!.revision;
  }
}

/** Texts of erased sessions are gone, and a key may lack the scope to read texts. */
const hasNoTexts = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 410 || error.status === 403);

function readProofHashes(hashes: readonly string[]): Bytes[] {
  const read = hashes.map(fromBase64Hash);
  if (read.includes(undefined)) throw unreadable('The proof has a hash that is none.');
  return read as Bytes[];
}

/** A session as the service shows and proves it: with its texts, where the key may read them. */
export function sessionFromService(session_id: string, signal: AbortSignal): SessionSource {
  let total = 0;
  async function* events(): AsyncGenerator<EventProof> {
    const texts = fetchEvents(session_id, signal);
    let hasTexts = true;
    const withTexts = async (): Promise<unknown> => {
      if (!hasTexts) return undefined;
      try {
        const next = await texts.next();
        return next.done ? undefined : next.value;
      } catch (error) {
        if (!hasNoTexts(error)) throw error;
        hasTexts = false;
        return undefined;
      }
    };
    let checkpoint: Checkpoint | undefined;
    for (let after: number | undefined; after === undefined || after < total - 1;) {
      const page = await fetchProof(session_id, after, signal);
      total = page.revision + 1;
      if (checkpoint?.note !== page.checkpoint) checkpoint = readCheckpoint(page.checkpoint);
      if (page.events.length === 0) return;
      for (const { inclusion, ...committed } of page.events)
        yield {
          event: (await withTexts()) ?? committed,
          leaf: inclusion.index,
          hashes: readProofHashes(inclusion.hashes),
          checkpoint,
        };
      after = page.events.at(-1)!.revision;
    }
  }
  return { session_id, events: events(), total: () => total, isWhole: true };
}
