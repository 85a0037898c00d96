import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { readEvents, type Schema } from '../../api/client.ts';
import { Markdown } from '../../components/Markdown.tsx';
import { ToolCallDetails } from './texts.tsx';

/** Deltas are shown together at most so often. */
const SHOW_MS = 100;
const MOST_RETRIES = 3;
const RETRY_MS = 1_000;

interface LiveState {
  text: string;
  calls: Schema<'ToolCall'>[];
}

/** The output of a running turn as it arrives, from its beginning. */
export function LiveOutput({ sessionId, turn }: { sessionId: string; turn: number }) {
  const client = useQueryClient();
  const [{ text, calls }, setState] = useState<LiveState>({ text: '', calls: [] });
  useEffect(() => {
    const stop = new AbortController();
    const live: LiveState = { text: '', calls: [] };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setState({ ...live });
      }, SHOW_MS);
    };
    const follow = async (): Promise<void> => {
      const path = `/v1/sessions/${sessionId}/turns/${turn}/stream`;
      for await (const { event, data } of readEvents(path, { signal: stop.signal })) {
        if (event === 'output.delta') live.text += (JSON.parse(data) as Schema<'OutputDelta'>).text;
        if (event === 'tool.called') {
          // What a model says beside its calls is not part of the answer.
          live.text = '';
          live.calls = [...live.calls, JSON.parse(data) as Schema<'StreamedToolCall'>];
        }
        show();
      }
      await client.invalidateQueries({ queryKey: ['session', sessionId] });
    };
    const followWithRetries = async (): Promise<void> => {
      for (let retries = 0; retries <= MOST_RETRIES && !stop.signal.aborted; retries += 1) {
        try {
          return await follow();
        } catch {
          live.text = '';
          live.calls = [];
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        }
      }
    };
    void followWithRetries();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [client, sessionId, turn]);
  return (
    <div className="grid gap-1.5">
      {calls.map((call) => (
        <ToolCallDetails key={`${call.round} ${call.call_id}`} call={call} />
      ))}
      {text === '' ? (
        <p role="status" className="text-muted-foreground">
          Waiting for the model…
        </p>
      ) : (
        <Markdown text={text} />
      )}
    </div>
  );
}
