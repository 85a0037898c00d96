/** The end of an interrupted verification of rows, stored in its copy of the read models. */
import type { Position } from '../../ports/eventStore.ts';
import { Type } from '../../domain/jsonSchema.ts';
import { lazyValidator } from '../../lib/validation/validation.ts';
import type { DamagedRow } from './damagedRows.ts';
import { VERIFIED_TABLES, type KeyValues, type VerifiedTable } from './rowReader.ts';

/** The transparency log when a verification began to compare the events of its copy with it. */
export interface ComparedWith {
  /** The signed checkpoint, which later trees have to extend. */
  checkpoint: string;
  /** The event of the last leaf; later events are compared again. */
  last: Position | undefined;
}

export interface VerificationState {
  /** Undefined unless each event was compared with it before it was copied. */
  tree?: ComparedWith | undefined;
  /** The table that is compared next, and the key after which; undefined once all tables are. */
  table: VerifiedTable | undefined;
  after: KeyValues | undefined;
  rows: number;
  differing: number;
  /** The first ones. */
  named: DamagedRow[];
}

/** The tables in the order in which they are compared. */
export const TABLES_IN_ORDER = Object.keys(VERIFIED_TABLES) as VerifiedTable[];

export const BEGINNING: VerificationState = {
  table: TABLES_IN_ORDER[0],
  after: undefined,
  rows: 0,
  differing: 0,
  named: [],
};

const Text = Type.String();
const Count = Type.Integer({ minimum: 0 });
const validator = lazyValidator(
  Type.Object({
    tree: Type.Optional(Type.Object({ checkpoint: Text, last: Type.Optional(Text) })),
    table: Type.Optional(Type.Enum(TABLES_IN_ORDER)),
    after: Type.Optional(Type.Array(Type.Union([Text, Type.Number()]))),
    rows: Count,
    differing: Count,
    named: Type.Array(Type.Object({ table: Text, key: Text, column: Text })),
  }),
);

/** Reads a stored state; undefined if it is none, so that the verification begins anew. */
export function parseState(text: string): VerificationState | undefined {
  try {
    const state = JSON.parse(text) as VerificationState;
    return validator()(state) ? state : undefined;
  } catch {
    return undefined;
  }
}
