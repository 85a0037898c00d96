/** A sample of a metric: its labels and its value. */
interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** The samples of each name. */
export type MetricSamples = ReadonlyMap<string, readonly Sample[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g;
const NUMBERS: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity };

/** A number as metrics write it; NaN for any other text. */
export const numberIn = (text = ''): number => NUMBERS[text] ?? Number(text);

const unescape = (text: string): string =>
  text.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));

/**
 * Parses metrics in the format of OpenMetrics or of Prometheus. Comments, exemplars, timestamps and
 * lines that are no samples are ignored.
 */
export function parseMetrics(text: string): MetricSamples {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    // An exemplar has labels, too.
    const [, name, written = '', number = ''] = LINE.exec(line.split(' # ')[0]!) ?? [];
    const value = numberIn(number);
    if (name === undefined || Number.isNaN(value)) continue;
    const pairs = [...written.matchAll(LABEL)];
    const labels = Object.fromEntries(pairs.map(([, label, quoted]) => [label, unescape(quoted!)]));
    metrics.set(name, [...(metrics.get(name) ?? []), { labels, value }]);
  }
  return metrics;
}

/** The value of a metric without labels; undefined without one. */
export const valueOf = (metrics: MetricSamples, name: string): number | undefined =>
  metrics.get(name)?.[0]?.value;

/** The bounded resources of a process, by name, so that their order does not change. */
export function resourcesOf(metrics: MetricSamples) {
  const sum = (metric: string, resource: string | undefined): number =>
    (metrics.get(`turnlog_resource_${metric}`) ?? [])
      .filter(({ labels }) => labels['resource'] === resource)
      .reduce((total, { value }) => total + value, 0);
  const resourcesIn = (suffix: '' | '_bytes') =>
    (metrics.get(`turnlog_resource_limit${suffix}`) ?? []).map(({ labels, value: limit }) => ({
      name: labels['resource'] ?? '',
      isBytes: suffix !== '',
      used: sum(`used${suffix}`, labels['resource']),
      limit,
      waiting: sum('waiting', labels['resource']),
      rejected: sum('rejections_total', labels['resource']),
    }));
  return [...resourcesIn(''), ...resourcesIn('_bytes')].toSorted((a, b) =>
    a.name.localeCompare(b.name),
  );
}
