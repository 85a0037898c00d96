import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOKS = 50;
const LOOK_MS = 20;

/** Whether the garbage collector frees an object within a second. */
export async function isFreed(object: WeakRef<object>): Promise<boolean> {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  for (let look = 0; look < LOOKS; look += 1) {
    // A reference that was just read lives until the end of its step.
    await sleep(LOOK_MS);
    collectGarbage();
    if (object.deref() === undefined) return true;
  }
  return false;
}
