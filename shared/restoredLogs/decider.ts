import type { Decider } from '../domain/decider.ts';
import type { LogEvent } from './events.ts';

type LogCommand =
  | { type: 'accept_restore'; replaces: readonly string[]; reason: string }
  | { type: 'declare_tree'; origin: string; vkeys: readonly string[] }
  | { type: 'replace_tree'; reason: string };

/** The declared keys of each tree, by its origin; the newest declaration counts. */
type DeclaredKeys = Readonly<Record<string, readonly string[]>>;

/** The log's own stream: deliberate restores, and the trees that were signed over the log. */
export const log: Decider<LogCommand, DeclaredKeys, LogEvent> = {
  initialState: {},
  decide(command, declared) {
    switch (command.type) {
      case 'accept_restore': {
        const { replaces, reason } = command;
        return [{ type: 'log.restore_accepted.v1', data: { replaces: [...replaces], reason } }];
      }
      case 'declare_tree': {
        const { origin, vkeys } = command;
        const declaredKeys = declared[origin] ?? [];
        if (vkeys.every((vkey) => declaredKeys.includes(vkey))) return [];
        const all = [...new Set([...declaredKeys, ...vkeys])];
        return [{ type: 'log.tree_declared.v1', data: { origin, vkeys: all } }];
      }
      case 'replace_tree': {
        const { reason } = command;
        return [
          { type: 'log.tree_replaced.v1', data: { replaces: Object.keys(declared), reason } },
        ];
      }
      default:
        return command satisfies never;
    }
  },
  evolve: (state, event) =>
    event.type === 'log.tree_declared.v1'
      ? { ...state, [event.data.origin]: event.data.vkeys }
      : state,
};
