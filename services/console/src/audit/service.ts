/** Reads what is verified from the service. */
import { ApiError } from '../api/apiError.ts';
import { api, apiFetch } from '../api/client.ts';
import { fromBase64Hash } from './verify/bytes.ts';
import { tileHashes, type ReadHash } from './verify/merkle.ts';
import { readCheckpoint, type Checkpoint } from './verify/notes.ts';
import type { EventProof } from './verify/verifySession.ts';

const PAGE_EVENTS = 500;
const PROOF_ATTEMPTS = 5;
const PROOF_WAIT_MS = 1_000;

/** A file of the log; undefined for one that it does not have. */
async function fetchLog(path: string): Promise<Response | undefined> {
  try {
    return await apiFetch(new Request(new URL(`/v1/log/${path}`, location.origin)));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** The newest checkpoint of the service's log, null before the first one. */
export async function fetchCheckpoint(): Promise<Checkpoint | null> {
  const response = await fetchLog('checkpoint');
  return response ? readCheckpoint(await response.text()) : null;
}

/** Reads the hashes of the service's log. */
export const readTree = (size: number): ReadHash =>
  tileHashes(size, async (path) => {
    const response = await fetchLog(path);
    return response && new Uint8Array(await response.arrayBuffer());
  });

const paramsOf = (sessionId: string, after: number | undefined) => ({
  path: { sessionId },
  query: { limit: PAGE_EVENTS, ...(after !== undefined && { after }) },
});

/** A page of a session's proof. Waits for the log to cover its last event. */
async function fetchProof(sessionId: string, after: number | undefined, signal: AbortSignal) {
  for (let attempt = 1; ; attempt += 1)
    try {
      const params = paramsOf(sessionId, after);
      return (await api.GET('/v1/sessions/{sessionId}/proof', { params, signal })).data!.data;
    } catch (error) {
      const isPending = error instanceof ApiError && error.code === 'proof_pending';
      if (!isPending || attempt === PROOF_ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, PROOF_WAIT_MS));
    }
}

/**
 * The events of a session with their texts, which its proof omits; undefined for each once texts
 * can't be read: those of erased sessions are gone, and a key may lack the scope.
 */
async function* fetchEvents(sessionId: string, signal: AbortSignal): AsyncGenerator<unknown, void> {
  try {
    for (let after: number | undefined; ;) {
      const params = paramsOf(sessionId, after);
      const { data } = await api.GET('/v1/sessions/{sessionId}/events', { params, signal });
      if (data!.data.length === 0) return;
      yield* data!.data;
      after = data!.data.at(-1)!.revision;
    }
  } catch (error) {
    if (!(error instanceof ApiError && [403, 410].includes(error.status))) throw error;
  }
}

/** A session as the service shows and proves it: with its texts, where the key may read them. */
export function sessionFromService(session_id: string, signal: AbortSignal) {
  let total = 0;
  async function* proofs(): AsyncGenerator<EventProof> {
    const events = fetchEvents(session_id, signal);
    let checkpoint: Checkpoint | undefined;
    for (let after: number | undefined; after === undefined || after < total - 1;) {
      const page = await fetchProof(session_id, after, signal);
      total = page.revision + 1;
      if (checkpoint?.note !== page.checkpoint) checkpoint = readCheckpoint(page.checkpoint);
      if (page.events.length === 0) return;
      for (const { inclusion, ...committed } of page.events) {
        const event = (await events.next()).value ?? committed;
        const hashes = inclusion.hashes.map(fromBase64Hash);
        yield { event, leaf: inclusion.index, hashes, checkpoint };
      }
      after = page.events.at(-1)!.revision;
    }
  }
  return { session_id, proofs: proofs(), total: () => total };
}
