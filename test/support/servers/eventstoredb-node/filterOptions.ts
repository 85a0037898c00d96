import type streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { Filter } from './filter.ts';
import { PAGE } from './page.ts';

/** Windows of a filter are counted in records; a server's default is one page. */
export function toFilter(
  options: streamsPb.ReadReq.Options.FilterOptions | undefined,
): Filter | undefined {
  if (!options) return undefined;
  const onStream = options.hasStreamIdentifier();
  const expression = onStream ? options.getStreamIdentifier() : options.getEventType();
  const window = options.hasMax() ? options.getMax() : PAGE;
  return {
    on: onStream ? 'stream' : 'type',
    prefixes: expression?.getPrefixList() ?? [],
    regex: expression?.getRegex() ?? '',
    window,
    checkpointInterval: window * Math.max(1, options.getCheckpointintervalmultiplier()),
  };
}
