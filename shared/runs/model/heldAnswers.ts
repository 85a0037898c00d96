/** The memory of a run's answers, from their arrival until they are recorded. */
export interface HeldAnswers extends Disposable {
  /** Takes over the memory of an answer, which the function releases. */
  hold(release: () => void): void;
  /** Work on the answers. It needs their memory until it ends, which may be after the run. */
  during<Result>(work: Promise<Result>): Promise<Result>;
  /** Releases the memory of the answers so far: they are recorded, or given up. */
  release(): void;
}

/** Holds the memory of answers: other runs must not fill it again while texts are still in use. */
export function createHeldAnswers(): HeldAnswers {
  let held: (() => void)[] = [];
  const works = new Set<Promise<unknown>>();

  function release(): void {
    const releases = held;
    held = [];
    const releaseAll = (): void => releases.forEach((each) => each());
    if (works.size === 0) releaseAll();
    else void Promise.allSettled(works).then(releaseAll);
  }

  return {
    hold: (each) => void held.push(each),
    during(work) {
      const end = (): void => void works.delete(work);
      works.add(work);
      work.then(end, end);
      return work;
    },
    release,
    [Symbol.dispose]: release,
  };
}
