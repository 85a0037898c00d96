/** Of text that is read or written between two turns, about. */
export const PIECE_BYTES = 64 * 1_024;

/** What waits, by account; whose turn it is next comes first. */
const waiting = new Map<string, (() => void)[]>();
let isGoing = false;

/**
 * Turns of the event loop from one piece to the next. A small request takes several; they cost next
 * to nothing while there is none.
 */
const APART = 4;

function takeNext(): (() => void) | undefined {
  for (const [accountId, line] of waiting) {
    const next = line.shift();
    waiting.delete(accountId);
    if (line.length > 0) waiting.set(accountId, line);
    return next;
  }
  return undefined;
}

function goOn(left: number): void {
  if (left > 0) return void setImmediate(goOn, left - 1);
  const next = takeNext();
  isGoing = next !== undefined;
  if (!next) return;
  next();
  setImmediate(goOn, APART - 1);
}

/**
 * Resolves when it is the caller's turn to do a piece of work that takes milliseconds. Pieces are
 * done one at a time and some turns of the event loop apart, whoever asks for them, so that a
 * hundred large answers keep a small one waiting hardly longer than one of them does. The accounts
 * take turns. As many wait as bodies, runs and answers have room.
 */
export function giveWay(accountId: string): Promise<void> {
  return new Promise((resolve) => {
    const line = waiting.get(accountId);
    if (line) line.push(resolve);
    else waiting.set(accountId, [resolve]);
    if (isGoing) return;
    isGoing = true;
    setImmediate(goOn, 0);
  });
}

/** The same for work on a text of so many characters, which is done at once where that is little. */
export async function giveWayForText(accountId: string, chars: number): Promise<void> {
  if (chars > PIECE_BYTES) await giveWay(accountId);
}
