import type grpc from '@grpc/grpc-js';
import { authorizationOf, type Access } from './access.ts';
import { noFaults, type AppendFault, type Faults } from './faults.ts';
import { createInFlight } from './inFlight.ts';
import type { NodeLog } from './log.ts';
import type { AppendOutcome } from './types.ts';
import type { ServerVersion } from './versions.ts';
import { notLeader, unauthenticated, unavailable, type WireError } from './wireErrors.ts';

export interface Endpoint {
  host: string;
  port: number;
}

export interface Member extends Endpoint {
  instanceId: string;
  state: 'leader' | 'follower';
  alive: boolean;
}

/** One write of a client: how it is done, and the ways in which it may be answered. */
export interface Write {
  write: () => AppendOutcome;
  answer: (outcome: AppendOutcome) => void;
  /** Ends the call that carries the write. */
  fail: (error: WireError) => void;
  /** Answers that the write timed out within the cluster. */
  timeout: () => void;
}

export interface NodeOptions {
  log: NodeLog;
  /** The members of the cluster, itself included, at this moment. */
  members: () => Member[];
  /** What the node lets whom do. */
  access: Access;
  /** The version of a server that the node passes for. */
  version: ServerVersion;
}

/** What the services of a node share. */
export interface NodeContext extends NodeOptions {
  faults: Faults;
  /** Tells, when its time has come, why a call is refused at its start; undefined when it is let in. Never while the node is silent. */
  admit: (metadata: grpc.Metadata, decided: (refusal: WireError | undefined) => void) => void;
  write: (metadata: grpc.Metadata, write: Write) => void;
  /** Answers an append when its commit is known. */
  settle: ReturnType<typeof createInFlight>;
}

const LATE_WRITE_MS = 60;

/** The behaviour of one node. `self` tells its own place in the cluster, `dropConnections` cuts every client off. */
export function createNode(options: NodeOptions, self: () => Member, dropConnections: () => void): NodeContext {
  const faults = noFaults();

  /** A client that asks for the leader is sent on to it; without that wish a follower serves, and passes writes on itself. */
  function leaderElsewhere(metadata: grpc.Metadata): WireError | undefined {
    if (metadata.get('requires-leader')[0] !== 'true' || self().state === 'leader') return undefined;
    const leader = options.members().find((member) => member.state === 'leader' && member.alive);
    return leader ? notLeader(leader) : unavailable();
  }

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

  const admit: NodeContext['admit'] = (metadata, decided) =>
    inTime(() => decided(faults.unavailable ? unavailable() : (strange(metadata) ?? leaderElsewhere(metadata))));

  const outcomes: Record<AppendFault, (request: Write) => void> = {
    none: (request) => request.answer(request.write()),
    unavailable_before_write: ({ fail }) => fail(unavailable()),
    connection_lost_before_write: dropConnections,
    no_answer_before_write: () => undefined,
    stream_error_after_write(request) {
      request.write();
      request.fail(unavailable());
    },
    connection_lost_after_write(request) {
      request.write();
      dropConnections();
    },
    no_answer_after_write: (request) => void request.write(),
    timeout_answer_after_write(request) {
      request.write();
      request.timeout();
    },
    conflict_answer_after_write(request) {
      const outcome = request.write();
      request.answer(outcome.kind === 'success' ? { kind: 'wrong_expected_version', current: outcome.revision } : outcome);
    },
    late_write: (request) => void setTimeout(() => self().alive && request.answer(request.write()), LATE_WRITE_MS),
  };

  const write: NodeContext['write'] = (metadata, request) => {
    const fault = faults.onAppend();
    inTime(() => {
      const refused = faults.unavailable ? unavailable() : leaderElsewhere(metadata);
      if (refused) request.fail(refused);
      else outcomes[fault](request);
    });
  };

  return { ...options, faults, admit, write, settle: createInFlight() };
}
