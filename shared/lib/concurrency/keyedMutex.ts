/** By owner and key: the last of those in this process who have something to do. */
const queues = new WeakMap<object, Map<string, Promise<void>>>();

/**
 * Does the work after all that was put in line before it under the same key; a failure keeps nobody
 * back. Errors: those of the work.
 */
export function runExclusive<Result>(
  owner: object,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const line = queues.get(owner) ?? new Map<string, Promise<void>>();
  queues.set(owner, line);
  const done = (line.get(key) ?? Promise.resolve()).then(work);
  const settled = done
    .then(
      () => undefined,
      () => undefined,
    )
    .finally(() => {
      if (line.get(key) === settled) line.delete(key);
    });
  line.set(key, settled);
  return done;
}
