import type { TestService } from './service.ts';

export const OPENMETRICS = 'application/openmetrics-text';

/** Reads the metrics of a service. */
export async function scrape(
  { url, key }: Pick<TestService, 'url' | 'key'>,
  accept = '*/*',
): Promise<{ type: string; text: string }> {
  const response = await fetch(`${url}/metrics`, { headers: { accept, 'x-api-key': key } });
  return { type: response.headers.get('content-type')!, text: await response.text() };
}

/** The series of a scrape without their values. */
export const seriesOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')))
    .toSorted();

/** The value of a series; NaN where there is none. */
export const valueOf = (text: string, series: string): number =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')
      .at(-1),
  );
