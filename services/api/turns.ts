/** Of text that is read or written between two turns, about. */
export const PIECE_BYTES = 64 * 1_024;

const waiting: (() => void)[] = [];
let isGoing = false;

/**
 * Turns of the event loop from one piece to the next. A small request takes several; they cost next
 * to nothing while there is none.
 */
const APART = 4;

function goOn(left: number): void {
  if (left > 0) return void setImmediate(goOn, left - 1);
  const next = waiting.shift();
  isGoing = next !== undefined;
  if (!next) return;
  next();
  setImmediate(goOn, APART - 1);
}

/**
 * Resolves when it is the caller's turn to do a piece of work that takes milliseconds. Pieces are
 * done one at a time and some turns of the event loop apart, whoever asks for them, so that a
 * hundred large answers keep a small one waiting hardly longer than one of them does. As many wait
 * as answers have room.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isGoing) return;
    isGoing = true;
    setImmediate(goOn, 0);
  });
}
