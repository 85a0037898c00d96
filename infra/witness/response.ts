/** Reads the body of a response; undefined when it has more than `maxBytes`. */
export async function readLimitedText(
  response: Response,
  maxBytes: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Why a request failed, to follow the name of the server. `answerMs` was its time limit. */
export function describeFailure(error: unknown, answerMs: number): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `did not answer within ${answerMs / 1_000} s`;
  const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
  return `can’t be reached (${cause?.code ?? (error as Error).name})`;
}
