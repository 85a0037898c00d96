/** A sample of a metric: its labels and its value. */
export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** The samples of each name. */
export type Metrics = ReadonlyMap<string, readonly Sample[]>;

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n' };
const NUMBERS: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity };

const unescape = (text: string): string =>
  text.replace(/\\(.)/g, (_, char: string) => ESCAPES[char] ?? char);

/**
 * Parses metrics in the format of OpenMetrics or of Prometheus. Comments, exemplars, timestamps and
 * lines that are no samples are ignored.
 */
export function parseMetrics(text: string): Metrics {
  const metrics = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue;
    // An exemplar has labels, too.
    const [, name, written = '', number = ''] = LINE.exec(line.split(' # ')[0]!) ?? [];
    const value = NUMBERS[number] ?? Number(number);
    if (name === undefined || Number.isNaN(value)) continue;
    const labels = Object.fromEntries(
      [...written.matchAll(LABEL)].map(([, label, quoted]) => [label!, unescape(quoted!)]),
    );
    const samples = metrics.get(name) ?? [];
    samples.push({ labels, value });
    metrics.set(name, samples);
  }
  return metrics;
}

/** The value of a metric without labels; undefined without one. */
export const valueOf = (metrics: Metrics, name: string): number | undefined =>
  metrics.get(name)?.[0]?.value;

/** A bounded resource. `limit` is undefined where the process has none. */
export interface Resource {
  name: string;
  unit: 'count' | 'bytes';
  used: number;
  limit: number | undefined;
  waiting: number | undefined;
  rejectedByAccount: number;
  rejectedByProcess: number;
}

/** The bounded resources of a process, by name, so that their order does not change. */
export function resourcesOf(metrics: Metrics): Resource[] {
  const rejected = metrics.get('turnlog_resource_rejections_total') ?? [];
  const waiting = metrics.get('turnlog_resource_waiting') ?? [];
  const find = (samples: readonly Sample[], resource: string, limit?: string) =>
    samples.find(
      ({ labels }) =>
        labels['resource'] === resource && (limit === undefined || labels['limit'] === limit),
    )?.value;
  const resourcesIn = (suffix: '' | '_bytes', unit: Resource['unit']): Resource[] =>
    (metrics.get(`turnlog_resource_limit${suffix}`) ?? []).map(({ labels, value }) => {
      const name = labels['resource'] ?? '';
      return {
        name,
        unit,
        used: find(metrics.get(`turnlog_resource_used${suffix}`) ?? [], name) ?? 0,
        limit: value,
        waiting: find(waiting, name),
        rejectedByAccount: find(rejected, name, 'account') ?? 0,
        rejectedByProcess: find(rejected, name, 'process') ?? 0,
      };
    });
  const bounded = [...resourcesIn('', 'count'), ...resourcesIn('_bytes', 'bytes')];
  const known = new Set(bounded.map(({ name }) => name));
  const rates = [...new Set(rejected.map(({ labels }) => labels['resource'] ?? ''))]
    .filter((name) => !known.has(name))
    .map((name): Resource => ({
      name,
      unit: 'count',
      used: 0,
      limit: undefined,
      waiting: find(waiting, name),
      rejectedByAccount: find(rejected, name, 'account') ?? 0,
      rejectedByProcess: find(rejected, name, 'process') ?? 0,
    }));
  return [...bounded, ...rates].toSorted(
    (a, b) => a.name.localeCompare(b.name) || a.unit.localeCompare(b.unit),
  );
}
