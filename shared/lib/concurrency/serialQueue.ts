interface SerialQueue {
  /** Runs work after all earlier work, whether that succeeded or failed. Rejects as the work does. */
  run<Result>(work: () => Result | Promise<Result>): Promise<Result>;
  /** Resolves once all work queued so far has ended. */
  idle(): Promise<unknown>;
}

/** Runs work one after the other. */
export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(work) {
      const running = last.then(work);
      last = running.catch(() => undefined);
      return running;
    },
    idle: () => last,
  };
}
