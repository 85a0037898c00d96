/** What an export answers: the text, and where the next page is. Rejects where it was cut off. */
export async function exported(
  { url, key }: { url: string; key: string },
  path: string,
): Promise<{ status: number; type: string | null; text: string; next: string | undefined }> {
  const answer = await fetch(url + path, { headers: { 'x-api-key': key } });
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    text: await answer.text(),
    next: /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1],
  };
}

/** JSON lines, each as what it says. */
export const linesOf = (text: string): any[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
