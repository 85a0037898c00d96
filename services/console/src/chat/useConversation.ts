import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { api, dataOf } from '../api/client.ts';
import { newIdempotencyKey } from '../api/idempotencyKey.ts';
import { streamTurn } from './streamTurn.ts';
import { isOpen, putTurn, turnOfTranscript, type ChatTurn } from './thread/turnState.ts';

/** The turns of a session that are shown, the latest ones. */
const MOST_TURNS = 50;

async function readLatest(sessionId: string, after = 0): Promise<ChatTurn[]> {
  const query = { limit: MOST_TURNS, reasoning: true, ...(after > 0 && { after }) };
  const params = { path: { sessionId }, query };
  const session = await dataOf(api.GET('/v1/sessions/{sessionId}', { params }));
  const start = session.turn_count - MOST_TURNS;
  if (start > 0 && after === 0) return readLatest(sessionId, start);
  return session.turns.map((turn) => turnOfTranscript(sessionId, turn));
}

interface ConversationOptions {
  agentId: string;
  /** The session to continue; undefined for a new one. */
  sessionId: string | undefined;
  /** Called once the service has started the session. */
  onSession: (sessionId: string) => void;
}

/** Loads a session, or starts one with the first input, and follows its open turn. */
export function useConversation({ agentId, sessionId, onSession }: ConversationOptions) {
  const queryClient = useQueryClient();
  const [loadedId] = useState(sessionId);
  const [turns, setTurns] = useState<readonly ChatTurn[]>([]);
  /** The key of the turn to stop; it is cancelled as soon as it has a number. */
  const [stopping, setStopping] = useState<string>();
  const signal = useRef<AbortSignal>(undefined);
  useEffect(() => {
    const leaving = new AbortController();
    signal.current = leaving.signal;
    return () => leaving.abort();
  }, []);

  const onChange = useEffectEvent((turn: ChatTurn): void => {
    setTurns((before) => putTurn(before, turn));
    if (turn.sessionId !== undefined && turn.sessionId !== sessionId) onSession(turn.sessionId);
    if (!isOpen(turn)) void queryClient.invalidateQueries({ queryKey: ['sessions'] });
  });
  const follow = (turn: ChatTurn): void => {
    setTurns((before) => putTurn(before, turn));
    void streamTurn(turn, { agentId, onChange, signal: signal.current! });
  };

  const transcript = useQuery({
    queryKey: ['chat', loadedId],
    queryFn: () => readLatest(loadedId!),
    enabled: loadedId !== undefined,
    staleTime: Infinity,
    gcTime: 0,
  });
  const onLoaded = useEffectEvent((loaded: readonly ChatTurn[]): void => {
    setTurns(loaded);
    const last = loaded.at(-1);
    if (last && isOpen(last)) follow(last);
  });
  useEffect(() => {
    if (transcript.data) onLoaded(transcript.data);
  }, [transcript.data]);

  const open = turns.find(isOpen);
  const cancellation = useMutation({
    mutationFn: (turn: number) => {
      const params = { path: { sessionId: sessionId! } };
      return api.POST('/v1/sessions/{sessionId}/cancel', { params, body: { turn } });
    },
    onError: () => setStopping(undefined),
  });
  const { mutate: cancel } = cancellation;
  const cancelled = open?.key === stopping && sessionId !== undefined ? open?.number : undefined;
  useEffect(() => {
    if (cancelled !== undefined) cancel(cancelled);
  }, [cancelled, cancel]);

  const send = (input: string): void =>
    follow({ key: newIdempotencyKey(), input, status: 'sending', sessionId, rounds: [] });
  return {
    turns,
    open,
    isLoading: transcript.isLoading,
    loadError: transcript.error,
    reload: () => void transcript.refetch(),
    send,
    stop: () => setStopping(open?.key),
    isStopping: open !== undefined && open.key === stopping,
    stopError: open && cancellation.error,
    /** Does what the API advises: the same request once more, or a new one with the same input. */
    retry: (turn: ChatTurn): void => {
      const wasSentHere = turn.key !== String(turn.number);
      if (turn.failure?.retry === 'same_key' && wasSentHere)
        return follow({ ...turn, status: 'sending', failure: undefined });
      // A turn that was never recorded is replaced; one that was recorded stays.
      if (turn.number === undefined) setTurns((all) => all.filter(({ key }) => key !== turn.key));
      return send(turn.input);
    },
  };
}
