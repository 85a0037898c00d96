import type { Decider } from '../domain/decider.ts';
import { Rejection } from '../domain/rejection.ts';
import type { Erasure } from '../domain/schema.ts';
import type { DisabledReason, WebhookEvent, WebhookSettings } from './events.ts';

/**
 * Changes to a webhook's settings. Absent settings do not change; `types: null` selects all types
 * again.
 */
export interface WebhookChange {
  url?: string;
  types?: string[] | null;
  enabled?: boolean;
}

export type WebhookCommand =
  | { type: 'create_webhook'; settings: WebhookSettings; secret: string }
  | { type: 'change_webhook'; change: WebhookChange }
  | { type: 'disable_webhook'; reason: DisabledReason }
  | { type: 'delete_webhook' }
  | ({ type: 'erase_webhook' } & Erasure);

type WebhookState =
  | { status: 'none' | 'deleted' | 'erased' }
  | { status: 'enabled' | 'disabled'; settings: WebhookSettings };

type Live = Extract<WebhookState, { settings: WebhookSettings }>;

const missing = (): Rejection => new Rejection('webhook_missing', 'There is no such webhook.');

function live(state: WebhookState): Live {
  if (!('settings' in state)) throw missing();
  return state;
}

/** The settings after the change; undefined when nothing changes. */
function changed(before: WebhookSettings, change: WebhookChange): WebhookSettings | undefined {
  const types = change.types === undefined ? before.types : (change.types ?? undefined);
  const after = { url: change.url ?? before.url, ...(types && { types }) };
  const same = after.url === before.url && after.types?.join() === before.types?.join();
  return same ? undefined : after;
}

function decideChange(change: WebhookChange, state: Live): WebhookEvent[] {
  const after = changed(state.settings, change);
  const settings = after ?? state.settings;
  const enabled = state.status === 'enabled';
  const events: WebhookEvent[] = after
    ? [{ type: 'webhook.changed.v1', data: { ...after, enabled } }]
    : [];
  if (change.enabled === true && !enabled)
    events.push({ type: 'webhook.enabled.v1', data: settings });
  if (change.enabled === false && enabled)
    events.push({ type: 'webhook.disabled.v1', data: { ...settings, reason: 'request' } });
  return events;
}

function decide(command: WebhookCommand, state: WebhookState): WebhookEvent[] {
  switch (command.type) {
    case 'create_webhook': {
      if (state.status !== 'none')
        throw new Rejection('webhook_exists', 'A webhook of this id exists already.');
      const { settings, secret } = command;
      return [{ type: 'webhook.created.v1', data: { ...settings, secret } }];
    }
    case 'change_webhook':
      return decideChange(command.change, live(state));
    case 'disable_webhook': {
      if (state.status !== 'enabled') return [];
      const data = { ...state.settings, reason: command.reason };
      return [{ type: 'webhook.disabled.v1', data }];
    }
    case 'delete_webhook':
      live(state);
      return [{ type: 'webhook.deleted.v1', data: {} }];
    case 'erase_webhook': {
      if (state.status === 'none') throw missing();
      const { type: _, ...data } = command;
      return state.status === 'erased' ? [] : [{ type: 'webhook.erased.v1', data }];
    }
    default:
      return command satisfies never;
  }
}

/**
 * True if the event holds the whole state, so that earlier ones need not be read. False for some
 * events of early releases.
 */
export const holdsWebhookState = ({ type, data }: WebhookEvent): boolean =>
  type === 'webhook.changed.v1'
    ? data.enabled !== undefined
    : type === 'webhook.enabled.v1' || type === 'webhook.disabled.v1'
      ? data.url !== undefined
      : true;

/** The state with what an event changes. Events after the deletion of a webhook change nothing. */
function evolveLive(
  state: WebhookState,
  change: { status?: Live['status']; settings?: WebhookSettings | undefined },
): WebhookState {
  if (state.status === 'deleted' || state.status === 'erased') return state;
  const before: Partial<Live> = 'settings' in state ? state : {};
  const { status = before.status, settings = before.settings } = change;
  return status && settings ? { status, settings } : state;
}

/** The settings that an event repeats. */
const repeatedSettings = ({ url, types }: Partial<WebhookSettings>): WebhookSettings | undefined =>
  url === undefined ? undefined : { url, ...(types && { types }) };

function evolve(state: WebhookState, event: WebhookEvent): WebhookState {
  switch (event.type) {
    case 'webhook.created.v1': {
      const { secret: _, ...settings } = event.data;
      return { status: 'enabled', settings };
    }
    case 'webhook.changed.v1': {
      const { enabled, ...settings } = event.data;
      if (enabled === undefined) return evolveLive(state, { settings });
      return evolveLive(state, { status: enabled ? 'enabled' : 'disabled', settings });
    }
    case 'webhook.enabled.v1':
      return evolveLive(state, { status: 'enabled', settings: repeatedSettings(event.data) });
    case 'webhook.disabled.v1':
      return evolveLive(state, { status: 'disabled', settings: repeatedSettings(event.data) });
    case 'webhook.deleted.v1':
      return { status: 'deleted' };
    case 'webhook.erased.v1':
      return { status: 'erased' };
    default:
      return event satisfies never;
  }
}

/** A webhook: an address to which the events of its account are sent. */
export const webhook: Decider<WebhookCommand, WebhookState, WebhookEvent> = {
  initialState: { status: 'none' },
  decide,
  evolve,
};
