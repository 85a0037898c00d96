/** Of text that is read or written between two turns, about. */
export const SLICE_BYTES = 64 * 1_024;

/** What waits, by account; whose turn it is next comes first. */
const waiting = new Map<string, (() => void)[]>();
let isRunning = false;

/**
 * Turns of the event loop from one piece to the next. A small request takes several; they cost next
 * to nothing while there is none.
 */
const LOOP_TURNS_BETWEEN = 4;

function takeNext(): (() => void) | undefined {
  for (const [accountId, line] of waiting) {
    const next = line.shift();
    waiting.delete(accountId);
    if (line.length > 0) waiting.set(accountId, line);
    return next;
  }
  return undefined;
}

function runNext(left: number): void {
  if (left > 0) return void setImmediate(runNext, left - 1);
  const next = takeNext();
  isRunning = next !== undefined;
  if (!next) return;
  next();
  setImmediate(runNext, LOOP_TURNS_BETWEEN - 1);
}

/**
 * Resolves when it is the caller's turn to do a piece of work that takes milliseconds. Pieces are
 * done one at a time and some turns of the event loop apart, whoever asks for them, so that a
 * hundred large answers keep a small one waiting hardly longer than one of them does. The accounts
 * take turns. As many wait as bodies, runs and answers have room.
 */
export function yieldToEventLoop(accountId: string): Promise<void> {
  return new Promise((resolve) => {
    const line = waiting.get(accountId);
    if (line) line.push(resolve);
    else waiting.set(accountId, [resolve]);
    if (isRunning) return;
    isRunning = true;
    setImmediate(runNext, 0);
  });
}

/** The same for work on a text of so many characters, which is done at once where that is little. */
export async function yieldForText(accountId: string, chars: number): Promise<void> {
  if (chars > SLICE_BYTES) await yieldToEventLoop(accountId);
}
