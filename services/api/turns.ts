const waiting: (() => void)[] = [];
let isGoing = false;

function goOn(): void {
  const next = waiting.shift();
  isGoing = next !== undefined;
  if (!next) return;
  next();
  setImmediate(goOn);
}

/**
 * Resolves when it is the caller's turn to do a piece of work that takes milliseconds. One piece is
 * done in each turn of the event loop, whoever asks for it, so that a hundred large answers keep a
 * small one waiting no longer than one of them does. As many wait as answers have room.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isGoing) return;
    isGoing = true;
    setImmediate(goOn);
  });
}
