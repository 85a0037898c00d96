/** Answers and errors of a provider that take much more to read, or to keep, than to send. */

type Parts = Record<string, unknown>;

const json = (body: Parts): Buffer => Buffer.from(JSON.stringify(body));

const CALLS = 4_600;
const call = (id: string): Parts => ({ id, function: { name: 'calculator' } });

/** Thousands of tool calls whose ids collide with those that the service makes up. */
export function collidingCalls(): Buffer {
  const taken = Array.from({ length: CALLS / 2 }, (_, at) => call(`a_${CALLS / 2 + 2 + at}`));
  const tool_calls = [call('a'), ...taken, ...taken.map(() => call('a'))];
  return json({ choices: [{ finish_reason: 'tool_calls', message: { tool_calls } }] });
}

/** An error of 60 KiB that consists of one of the words that the service looks for. */
export const oneWordError = (): Buffer => json({ error: { message: 'system '.repeat(8_700) } });

/** 2 MB of text that takes two bytes per character, without a usage. */
export const wideText = (): Buffer =>
  json({ choices: [{ message: { content: `ж${'word '.repeat(400_000)}` } }] });

/** An answer of a model with the name of a member of all objects. */
export const inheritedNames = (): Buffer =>
  json({
    model: '__proto__',
    choices: [{ finish_reason: 'constructor', message: { content: 'Done.' } }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  });

const STREAMED_CALLS = 80;
const CHUNKS_OF_CALL = 4;
const PARTS_OF_CHUNK = 3_000;

/** A stream of 17 MB whose tool calls arrive in a million parts, each with a field of the provider's. */
export function* streamedFields(): Generator<string> {
  const chunk = (tool_calls: Parts[], finish_reason?: string): string =>
    `data: ${JSON.stringify({ choices: [{ delta: { tool_calls }, finish_reason }] })}\n\n`;
  for (let index = 0; index < STREAMED_CALLS; index += 1) {
    yield chunk([{ index, ...call(`call_${index}`) }]);
    const parts = Array.from({ length: PARTS_OF_CHUNK }, () => ({ index, x: 1 }));
    for (let sent = 0; sent < CHUNKS_OF_CALL; sent += 1) yield chunk(parts);
  }
  yield chunk([], 'tool_calls');
}

const LINES_AT_ONCE = 10_000;
const LINES = 1_000_000;

/** A stream of one event that consists of a million empty lines of data. */
export function* emptyLines(): Generator<string> {
  const lines = 'data:\n'.repeat(LINES_AT_ONCE);
  for (let sent = 0; sent < LINES; sent += LINES_AT_ONCE) yield lines;
}

const INDEXES_AT_ONCE = 5_000;
const INDEXES = 400_000;

/** A stream of one call in hundreds of thousands of parts, each with another index. */
export function* newIndexes(): Generator<string> {
  for (let sent = 0; sent < INDEXES; sent += INDEXES_AT_ONCE) {
    const tool_calls = Array.from({ length: INDEXES_AT_ONCE }, (_, part) => ({
      index: sent + part,
      id: 'a',
    }));
    yield `data: ${JSON.stringify({ choices: [{ delta: { tool_calls } }] })}\n\n`;
  }
}

const BYTES_AT_ONCE = 10_000;
const BYTES = 100_000;

/** HTTP chunks of one byte each, which are the beginning of a stream as well as of JSON. */
export function* chunksOfOneByte(): Generator<string> {
  const chunks = '1\r\n\n\r\n'.repeat(BYTES_AT_ONCE);
  for (let sent = 0; sent < BYTES; sent += BYTES_AT_ONCE) yield chunks;
}
