import type { Client, Reply } from './service.ts';

/** The entries of a list, page after page; `entriesOf` says where an answer has them. */
export async function* everyPage<Entry>(
  service: Pick<Client, 'get'>,
  path: string,
  entriesOf = (data: any): Entry[] => data,
): AsyncGenerator<Entry, void> {
  for (let next: string | undefined = path; next !== undefined;) {
    const { status, body, headers }: Reply = await service.get(next);
    if (status !== 200) throw new Error(`${next}: ${JSON.stringify(body)}`);
    yield* entriesOf(body.data);
    next = /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
  }
}
