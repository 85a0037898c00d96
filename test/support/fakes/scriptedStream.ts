import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** A chat completion as it is answered at once. */
interface Completion {
  id: string;
  model: string;
  choices: {
    message: {
      content: string | null;
      refusal: string | null;
      reasoning_content?: string;
      tool_calls?: object[];
    };
    finish_reason: string;
  }[];
  usage?: object;
}

/** How a text is parted. */
export interface Pieces {
  /** The text's pieces; a word each otherwise. */
  pieces?: readonly string[];
  /** Between two pieces. */
  piece_delay_ms?: number;
}

const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? [];

export const eventOf = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

/** A chunk of a stream with this delta. */
export const chunkOf = (delta: object, more: object = {}): string =>
  eventOf({ id: 'chatcmpl-s', model: 'm', choices: [{ index: 0, delta, ...more }] });

/** The same answer as a stream of chunks. */
export async function streamCompletion(
  response: ServerResponse,
  body: string,
  { pieces, piece_delay_ms = 0 }: Pieces,
): Promise<void> {
  const { id, model, choices, usage } = JSON.parse(body) as Completion;
  const { message, finish_reason } = choices[0]!;
  const chunk = (delta: object, reason: string | null = null): string =>
    eventOf({ id, model, choices: [{ index: 0, delta, finish_reason: reason }] });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(chunk({ role: 'assistant', content: '', refusal: null }));
  for (const piece of wordsOf(message.reasoning_content ?? ''))
    response.write(chunk({ reasoning_content: piece }));
  for (const piece of pieces ?? wordsOf(message.content ?? '')) {
    if (response.destroyed) return;
    response.write(chunk({ content: piece }));
    if (piece_delay_ms > 0) await sleep(piece_delay_ms);
  }
  for (const piece of wordsOf(message.refusal ?? '')) response.write(chunk({ refusal: piece }));
  for (const [index, call] of (message.tool_calls ?? []).entries()) {
    const { function: called, ...fields } = call as {
      id: string;
      function: { name: string; arguments: string };
    };
    const half = Math.ceil(called.arguments.length / 2);
    const of = (part: object): string => chunk({ tool_calls: [{ index, ...part }] });
    response.write(of({ ...fields, function: { name: called.name } }));
    response.write(of({ function: { arguments: called.arguments.slice(0, half) } }));
    response.write(of({ function: { arguments: called.arguments.slice(half) } }));
  }
  response.write(chunk({}, finish_reason));
  if (usage) response.write(eventOf({ id, model, choices: [], usage }));
  response.end('data: [DONE]\n\n');
}
