/** Since a time of `performance.now()`, in whole milliseconds: the system's clock may be put back. */
export const elapsedMs = (began: number): number => Math.round(performance.now() - began);
