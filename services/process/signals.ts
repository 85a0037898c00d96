/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function stopAtSignal(stop: AbortController): void {
  for (const name of ['SIGTERM', 'SIGINT'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
}
