import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { api, dataOf } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { streamTurn } from './streamTurn.ts';
import {
  isOpen,
  putEarlier,
  putTurn,
  turnOfTranscript,
  type ThreadTurn,
} from './thread/turnState.ts';

/** The turns of a session that are loaded at once, the latest first. */
const PAGE = 50;

async function readTurns(sessionId: string, after: number, limit = PAGE) {
  const query = { limit, reasoning: true, ...(after > 0 && { after }) };
  const session = await dataOf(
    api.GET('/v1/sessions/{sessionId}', { params: { path: { sessionId }, query } }),
  );
  const turns = session.turns.map((turn) => turnOfTranscript(sessionId, turn));
  return { turns, count: session.turn_count };
}

/** The latest turns of a session. */
async function readLatest(sessionId: string): Promise<ThreadTurn[]> {
  const { turns, count } = await readTurns(sessionId, 0);
  return count > PAGE ? (await readTurns(sessionId, count - PAGE)).turns : turns;
}

/** A conversation with an agent: its turns, and what a person can do with it. */
export interface Conversation {
  turns: readonly ThreadTurn[];
  /** The turn that is open. */
  open: ThreadTurn | undefined;
  isLoading: boolean;
  /** Why the transcript, its earlier turns or a cancellation failed. */
  error: Error | null;
  isStopping: boolean;
  hasEarlier: boolean;
  reload: () => void;
  loadEarlier: () => void;
  send: (input: string) => void;
  stop: () => void;
  /** Does what the API advises: the same request once more, or a new one with the same input. */
  retry: (turn: ThreadTurn) => void;
}

interface ConversationOptions {
  agentId: string;
  /** The session to continue; undefined for a new one. */
  sessionId: string | undefined;
  /** Called once the service has started the session. */
  onSession: (sessionId: string) => void;
}

/** Loads a session, or starts one with the first input, and follows its open turn. */
export function useConversation(options: ConversationOptions): Conversation {
  const { agentId, onSession } = options;
  const queryClient = useQueryClient();
  const [loadedId] = useState(options.sessionId);
  const [sessionId, setSessionId] = useState(options.sessionId);
  const [turns, setTurns] = useState<readonly ThreadTurn[]>([]);
  const [actionError, setActionError] = useState<Error | null>(null);
  /** The key of the turn that a person wants to stop; it is cancelled as soon as it has a number. */
  const [stopping, setStopping] = useState<string>();
  const leaving = useRef<AbortController>(undefined);

  const onChange = useEffectEvent((turn: ThreadTurn): void => {
    setTurns((before) => putTurn(before, turn));
    if (turn.sessionId !== undefined && turn.sessionId !== sessionId) {
      setSessionId(turn.sessionId);
      onSession(turn.sessionId);
    }
    if (isOpen(turn)) return;
    setStopping((key) => (key === turn.key ? undefined : key));
    void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  });
  const followRef = useRef((_turn: ThreadTurn): void => undefined);
  useEffect(() => {
    const controller = new AbortController();
    leaving.current = controller;
    followRef.current = (turn) => {
      onChange(turn);
      void streamTurn(turn, { agentId, onChange, signal: controller.signal });
    };
    return () => controller.abort();
  }, [agentId]);
  const follow = (turn: ThreadTurn): void => followRef.current(turn);

  const transcript = useQuery({
    queryKey: ['chat', loadedId],
    queryFn: () => readLatest(loadedId!),
    enabled: loadedId !== undefined,
    staleTime: Infinity,
    gcTime: 0,
  });
  const { data } = transcript;
  const onLoaded = useEffectEvent((loaded: readonly ThreadTurn[]): void => {
    setTurns((before) => putEarlier(before, loaded));
    const last = loaded.at(-1);
    if (last && isOpen(last)) follow(last);
  });
  useEffect(() => {
    if (data) onLoaded(data);
  }, [data]);

  const open = turns.find(isOpen);
  const isCancellable = open !== undefined && open.key === stopping && open.number !== undefined;
  const cancel = useEffectEvent(async (): Promise<void> => {
    const { sessionId: session, number } = open!;
    await api
      .POST('/v1/sessions/{sessionId}/cancel', {
        params: { path: { sessionId: session! } },
        body: { turn: number! },
      })
      .catch((error: unknown) => {
        setStopping(undefined);
        setActionError(error as Error);
      });
  });
  useEffect(() => {
    if (isCancellable) void cancel();
  }, [isCancellable]);

  const send = (input: string): void => {
    setActionError(null);
    follow({ key: newIdempotencyKey(), input, status: 'sending', sessionId, rounds: [] });
  };
  const first = turns[0]?.number ?? 1;
  const loadEarlier = async (): Promise<void> => {
    const after = Math.max(first - 1 - PAGE, 0);
    const { turns: earlier } = await readTurns(sessionId!, after, first - 1 - after);
    setTurns((before) => putEarlier(before, earlier));
  };
  return {
    turns,
    open,
    isLoading: transcript.isLoading,
    error: transcript.error ?? actionError,
    isStopping: stopping !== undefined,
    hasEarlier: first > 1,
    reload: () => void transcript.refetch(),
    loadEarlier: () => void loadEarlier().catch((error: unknown) => setActionError(error as Error)),
    send,
    stop: () => {
      setActionError(null);
      if (open) setStopping(open.key);
    },
    retry: (turn) => {
      const wasSentHere = turn.key !== String(turn.number);
      if (turn.failure?.retry === 'same_key' && wasSentHere)
        return follow({ ...turn, status: 'sending', failure: undefined });
      // A turn that was never recorded is replaced; one that was recorded stays.
      if (turn.number === undefined) setTurns((all) => all.filter(({ key }) => key !== turn.key));
      return send(turn.input);
    },
  };
}
