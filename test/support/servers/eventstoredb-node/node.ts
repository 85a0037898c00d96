import type grpc from '@grpc/grpc-js';
import { authorizationOf, type Access } from './access.ts';
import { noFaults, type AppendFault, type Faults } from './faults.ts';
import type { NodeLog } from './log.ts';
import type { AppendOutcome, Operation } from './types.ts';
import type { ServerVersion } from './versions.ts';
import { notLeader, unauthenticated, unavailable, type WireError } from './wireErrors.ts';

export interface Endpoint {
  host: string;
  port: number;
}

export interface Member extends Endpoint {
  instanceId: string;
  /**
   * One that is elected becomes the leader once its epoch is committed; without a leader all are
   * unknown.
   */
  state: 'leader' | 'pre_leader' | 'follower' | 'unknown';
  alive: boolean;
}

/** What becomes of an operation: its outcome, or a time-out within the cluster. */
export type Outcome = AppendOutcome | { kind: 'timeout' };

/** One write of a client: what it does, and the ways in which it may be answered. */
interface Write {
  operation: Operation;
  answer: (outcome: AppendOutcome) => void;
  /** Ends the call that carries the write. */
  fail: (error: WireError) => void;
  /** Answers that the write timed out within the cluster. */
  timeout: () => void;
  /** Answers that the cluster has no leader. */
  notReady: () => void;
}

export interface NodeOptions {
  log: NodeLog;
  /** The members of the cluster, itself included, at this moment. */
  members: () => Member[];
  /**
   * Does a write, here or at the leader. It is answered when it is done, and not at all when the
   * leader is lost meanwhile.
   */
  perform: (operation: Operation, done: (outcome: Outcome) => void) => void;
  /** What the node lets whom do. */
  access: Access;
  /** The version of a server that the node passes for. */
  version: ServerVersion;
}

/** What the services of a node share. */
export interface NodeContext extends NodeOptions {
  faults: Faults;
  /**
   * Tells, when its time has come, why a call is refused at its start; undefined when it is let in.
   * Never while the node is silent.
   */
  admit: (
    metadata: grpc.Metadata,
    decided: (refusal: WireError | undefined) => void,
    where?: 'at the leader' | 'anywhere',
  ) => void;
  /**
   * Why a call that asks for the leader is refused here; undefined when it does not ask for it, or
   * this is the leader.
   */
  leaderElsewhere: (metadata: grpc.Metadata) => WireError | undefined;
  write: (metadata: grpc.Metadata, write: Write) => void;
}

const LATE_WRITE_MS = 60;

/**
 * The behaviour of one node. `self` tells its own place in the cluster, `dropConnections` cuts
 * every client off.
 */
export function createNode(
  options: NodeOptions,
  self: () => Member,
  dropConnections: () => void,
): NodeContext {
  const faults = noFaults();

  /**
   * A client that asks for the leader is sent on to it; without that wish a follower serves, and
   * passes writes on itself.
   */
  function leaderElsewhere(metadata: grpc.Metadata): WireError | undefined {
    if (metadata.get('requires-leader')[0] !== 'true' || self().state === 'leader')
      return undefined;
    const leader = knownLeader();
    return leader ? notLeader(leader) : unavailable();
  }

  const knownLeader = (): Member | undefined =>
    options.members().find((member) => member.state === 'leader' && member.alive);

  const strange = (metadata: grpc.Metadata): WireError | undefined =>
    options.access.caller(authorizationOf(metadata)) === undefined ? unauthenticated() : undefined;

  /** Runs what a call leads to once the delay is over, unless the node is silent then. */
  function inTime(act: () => void): void {
    const ifItCan = (): void => {
      if (!faults.silent && self().alive) act();
    };
    if (faults.delayMs > 0) setTimeout(ifItCan, faults.delayMs);
    else ifItCan();
  }

  const admit: NodeContext['admit'] = (metadata, decided, where = 'at the leader') =>
    inTime(() => {
      const refusal = faults.unavailable ? unavailable() : strange(metadata);
      decided(refusal ?? (where === 'anywhere' ? undefined : leaderElsewhere(metadata)));
    });

  const outcomes: Record<AppendFault, (request: Write) => void> = {
    none: (request) => perform(request, request.answer),
    unavailable_before_write: ({ fail }) => fail(unavailable()),
    connection_lost_before_write: dropConnections,
    no_answer_before_write: () => undefined,
    stream_error_after_write: (request) => perform(request, () => request.fail(unavailable())),
    connection_lost_after_write: (request) => perform(request, dropConnections),
    no_answer_after_write: (request) => perform(request, () => undefined),
    timeout_answer_after_write: (request) => perform(request, request.timeout),
    conflict_answer_after_write: (request) =>
      perform(request, (outcome) =>
        request.answer(
          outcome.kind === 'success'
            ? { kind: 'wrong_expected_version', current: outcome.revision }
            : outcome,
        ),
      ),
    late_write: (request) =>
      void setTimeout(() => self().alive && perform(request, request.answer), LATE_WRITE_MS),
  };

  function perform({ operation, timeout }: Write, done: (outcome: AppendOutcome) => void): void {
    options.perform(operation, (outcome) =>
      outcome.kind === 'timeout' ? timeout() : done(outcome),
    );
  }

  const write: NodeContext['write'] = (metadata, request) => {
    const fault = request.operation.kind === 'append' ? faults.onAppend() : 'none';
    inTime(() => {
      if (faults.unavailable) return request.fail(unavailable());
      if (!knownLeader()) return request.notReady();
      const refused = leaderElsewhere(metadata);
      if (refused) request.fail(refused);
      else outcomes[fault](request);
    });
  };

  return { ...options, faults, admit, leaderElsewhere, write };
}
