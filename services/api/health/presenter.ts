import type { Static } from 'typebox';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type {
  DamagedStream,
  Health,
  ProjectionHealth,
  RelayHealth,
  RetentionHealth,
  ReplaysHealth,
  WebhooksHealth,
} from '../../../shared/health/health.ts';
import type { Ready } from './schemas.ts';

const presentRelay = ({ state, position, lag_ms, reason, parked }: RelayHealth) => ({
  state,
  ...(position !== undefined && { position }),
  lag_ms,
  ...(reason !== undefined && { reason }),
  ...(parked && { parked: { count: parked.count, keys: [...parked.keys] } }),
});

/** Omits why a stream was parked: the reason may quote its content. */
function presentProjection({
  caught_up,
  lag,
  late,
  doubt,
  unindexed_turns = 0,
  search_reason,
  erases_words = false,
  parked_streams,
}: ProjectionHealth) {
  const reason = doubt ?? late;
  return {
    caught_up,
    ...(lag && { lag_events: lag.events, lag_ms: lag.ms }),
    ...(reason !== undefined && { reason }),
    ...(unindexed_turns > 0 && { unindexed_turns }),
    ...(search_reason !== undefined && { search_reason }),
    ...(erases_words && { erases_words }),
    parked_streams: parked_streams.streams.map(({ stream, revision, event_type }) => ({
      stream,
      revision,
      event_type,
    })),
    ...(parked_streams.count > parked_streams.streams.length && {
      parked_count: parked_streams.count,
    }),
  };
}

const presentRetention = ({ reason, ...health }: RetentionHealth) => ({
  ...health,
  ...(reason !== undefined && { reason }),
});

const presentWebhooks = ({ reason, ...health }: WebhooksHealth) => ({
  ...health,
  ...(reason !== undefined && { reason }),
});

const presentReplays = ({ reason, ...health }: ReplaysHealth) => ({
  ...health,
  ...(reason !== undefined && { reason }),
});

const presentDamaged = ({ stream, first_revision, last_revision }: DamagedStream) => ({
  stream,
  first_revision,
  last_revision,
});

/** The health of a process that is ready. Throws `store_unavailable` for one that is not. */
export function presentHealth({
  ready,
  reason,
  projection,
  runs_in_flight,
  runs_waiting,
  tool_servers = [],
  open_circuits,
  damaged_streams = [],
  damaged_count = 0,
  damaged_rows,
  projector,
  relay,
  transparency_log,
  text_keys,
  erasures,
  retention,
  webhooks,
  replays,
  disk,
}: Health): Static<typeof Ready> {
  if (!ready) throw storeUnavailableError(reason ?? 'The service is not ready.');
  const parked = projection?.parked_streams.count ?? 0;
  const degraded =
    parked + damaged_streams.length > 0 ||
    damaged_rows !== undefined ||
    projection?.doubt !== undefined ||
    projection?.late !== undefined ||
    projection?.search_reason !== undefined ||
    projector?.search_reason !== undefined ||
    tool_servers.some(({ state }) => state === 'away') ||
    relay?.state === 'retrying' ||
    relay?.parked !== undefined ||
    transparency_log?.trouble !== undefined ||
    transparency_log?.doubt !== undefined ||
    transparency_log?.witnesses?.reason !== undefined ||
    open_circuits !== undefined ||
    text_keys !== undefined ||
    erasures !== undefined ||
    retention?.reason !== undefined ||
    webhooks?.reason !== undefined ||
    replays?.reason !== undefined ||
    disk !== undefined;
  return {
    status: degraded ? 'degraded' : 'ready',
    ...(projection && { projection: presentProjection(projection) }),
    ...(runs_in_flight !== undefined && { runs_in_flight }),
    ...(runs_waiting !== undefined && { runs_waiting }),
    ...(tool_servers.length > 0 && { tool_servers }),
    ...(open_circuits && { open_circuits }),
    ...(damaged_streams.length > 0 && { damaged_streams: damaged_streams.map(presentDamaged) }),
    ...(damaged_count > damaged_streams.length && { damaged_count }),
    ...(damaged_rows && { damaged_rows }),
    ...(projector && { projector }),
    ...(relay && { relay: presentRelay(relay) }),
    ...(transparency_log && { transparency_log }),
    ...(text_keys && { text_keys }),
    ...(erasures && { erasures }),
    ...(webhooks && { webhooks: presentWebhooks(webhooks) }),
    ...(replays && { replays: presentReplays(replays) }),
    ...(retention && { retention: presentRetention(retention) }),
    ...(disk && { disk }),
  };
}
