export type CloseLater = (close: () => unknown) => void;

/** Things that were opened, closed in the reverse order, also when opening the next one fails. */
export async function opening<Result>(
  open: (closeLater: CloseLater) => Promise<Result>,
): Promise<Result & { close: () => Promise<void> }> {
  const closers: Array<() => unknown> = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    return { ...(await open((closer) => closers.push(closer))), close };
  } catch (error) {
    await close();
    throw error;
  }
}
