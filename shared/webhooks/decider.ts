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
  | { type: 'disable_webhook'; reason: DisabledReason; at: number }
  | { type: 'delete_webhook' }
  | ({ type: 'erase_webhook' } & Erasure);

export type WebhookState =
  | { status: 'none' | 'deleted' | 'erased' }
  | { status: 'enabled' | 'disabled'; settings: WebhookSettings; revision: number };

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
  const settings = changed(state.settings, change);
  const events: WebhookEvent[] = settings ? [{ type: 'webhook.changed.v1', data: settings }] : [];
  if (change.enabled === true && state.status === 'disabled')
    events.push({ type: 'webhook.enabled.v1', data: {} });
  if (change.enabled === false && state.status === 'enabled')
    events.push({ type: 'webhook.disabled.v1', data: { reason: 'request' } });
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
      // A webhook that has changed since the failed attempts is tried again first.
      const isAsTried = 'settings' in state && state.revision === command.at;
      if (state.status !== 'enabled' || !isAsTried) return [];
      return [{ type: 'webhook.disabled.v1', data: { reason: command.reason } }];
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

/** Events after the deletion of a webhook change nothing. */
const onLive = (state: WebhookState, change: Partial<Live>): WebhookState =>
  'settings' in state ? { ...state, ...change, revision: state.revision + 1 } : state;

function evolve(state: WebhookState, event: WebhookEvent): WebhookState {
  switch (event.type) {
    case 'webhook.created.v1': {
      const { secret: _, ...settings } = event.data;
      return { status: 'enabled', settings, revision: 0 };
    }
    case 'webhook.changed.v1':
      return onLive(state, { settings: event.data });
    case 'webhook.enabled.v1':
      return onLive(state, { status: 'enabled' });
    case 'webhook.disabled.v1':
      return onLive(state, { status: 'disabled' });
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
