import { textOpener } from '../../eventlog/encryption/closedText.ts';
import type { Keyring } from '../../eventlog/encryption/keyring.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { yieldToEventLoop, SLICE_BYTES } from '../../lib/concurrency/yieldToEventLoop.ts';
import type { SessionRow, TurnRow } from '../../readModels/tables.ts';

/** A turn's row with each of its texts replaced. */
const mapTexts = (row: TurnRow, replace: (text: string) => string): TurnRow => ({
  ...row,
  input: replace(row.input),
  output: row.output === null ? null : replace(row.output),
  error: row.error && { ...row.error, message: replace(row.error.message) },
  tool_calls: row.tool_calls.map((call) => ({
    ...call,
    arguments: replace(call.arguments),
    result: replace(call.result),
    ...(call.content !== undefined && { content: replace(call.content) }),
  })),
});

function textsOf(row: TurnRow): string[] {
  const texts: string[] = [];
  mapTexts(row, (text) => {
    texts.push(text);
    return text;
  });
  return texts;
}

/**
 * Opens the texts of a session's turns, one row after the other, in place: closed and open they are
 * never held all at once. Errors: those of textOpener, BoxBroken.
 */
export async function openTurns(
  keys: Pick<Keyring, 'find'>,
  { account_id, session_id }: Pick<SessionRow, 'account_id' | 'session_id'>,
  rows: TurnRow[],
): Promise<void> {
  const open = await textOpener(keys, sessionStream(session_id), rows.flatMap(textsOf));
  let chars = 0;
  for (const [index, row] of rows.entries()) {
    for (const { length } of textsOf(row)) chars += length;
    if (chars > SLICE_BYTES) {
      await yieldToEventLoop(account_id);
      chars = 0;
    }
    rows[index] = mapTexts(row, open);
  }
}
