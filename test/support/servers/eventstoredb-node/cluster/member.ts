import type { NodeLog } from '../log.ts';
import type { Member, NodeOptions } from '../node.ts';
import { createElection } from './election.ts';
import { createForwarding } from './forwarding.ts';
import { lead, type Leading } from './leading.ts';
import { min, type Message } from './protocol.ts';
import { openReplica } from './replica.ts';
import { trackSilences } from './silences.ts';
import { HEARTBEAT_MS, startClock } from './timing.ts';
import { openTransport } from './transport.ts';

interface Options {
  log: NodeLog;
  /** All members as this one sees them, kept up to date here. */
  members: Member[];
  self: number;
  /** Where the members listen for each other. */
  ports: readonly number[];
}

/**
 * A node's part in the cluster: it votes, leads or follows, and sees to it that its log is that of
 * the majority.
 */
export async function joinCluster({ log, members, self, ports }: Options) {
  const replica = openReplica(log);
  const silences = trackSilences(members, self);
  const peers = members.map((_, index) => index).filter((index) => index !== self);
  let leading: Leading | undefined;
  let sinceHeartbeat = 0;
  /** Up to where the log is known to be the leader's; nothing is known in a new term. */
  let matched = { term: 0, end: 0n };

  const transport = await openTransport(self, ports, receive);
  const broadcast = (message: Message): void =>
    peers.forEach((peer) => transport.send(peer, message));
  const forwarding = createForwarding(transport.send);
  const election = createElection({
    self,
    members,
    replica,
    silence: silences.of,
    broadcast,
    send: transport.send,
    changed,
  });

  function changed(): void {
    if (!election.leads()) leading = undefined;
    else leading ??= startLeading();
  }

  const startLeading = (): Leading =>
    lead({
      replica,
      term: election.term(),
      peers,
      isAlive: (peer) => members[peer]?.alive ?? false,
      send: transport.send,
      established: election.established,
    });

  function learnCommitted(committed: bigint): void {
    if (matched.term === election.term()) replica.commit(min(committed, matched.end));
  }

  function replicate(from: number, message: Message & { kind: 'replicate' }): void {
    const { term } = message;
    const end = replica.accept(message.from, message.epoch, message.rows);
    if (end === undefined) {
      const mismatch = { epochs: replica.epochs(), end: replica.end() };
      return transport.send(from, { kind: 'mismatch', term, ...mismatch });
    }
    if (matched.term !== term || matched.end < end) matched = { term, end };
    learnCommitted(message.committed);
    transport.send(from, { kind: 'replicated', term, end });
  }

  function receive(from: number, message: Message): void {
    const member = members[from];
    if (!member) return;
    silences.heard(from);
    const isTrial = message.kind === 'ask_vote' && message.trial;
    if (message.term > election.term() && !isTrial) election.adopt(message.term);
    const isPresent = message.term === election.term();
    switch (message.kind) {
      case 'gossip':
        member.state = message.state;
        member.instanceId = message.instanceId;
        if (!isPresent) return;
        if (message.state === 'leader' || message.state === 'pre_leader') election.follow(from);
        else election.miss(from);
        return;
      case 'ask_vote':
        return election.asked(from, message);
      case 'vote':
        return election.voted(from, message);
      case 'replicate':
        if (!isPresent) return;
        election.follow(from);
        return replicate(from, message);
      case 'replicated':
        return isPresent ? leading?.replicated(from, message.end) : undefined;
      case 'mismatch':
        return isPresent ? leading?.mismatch(from, message.epochs, message.end) : undefined;
      case 'forward':
        if (members[self]?.state !== 'leader') return;
        return leading?.write(message.operation, (outcome) =>
          transport.send(from, {
            kind: 'answer',
            term: election.term(),
            request: message.request,
            outcome,
            committed: replica.committed(),
          }),
        );
      case 'answer':
        if (isPresent) learnCommitted(message.committed);
        return forwarding.answered(message.request, message.outcome);
    }
  }

  const clock = startClock((elapsed) => {
    silences.elapse(elapsed);
    election.tick(elapsed);
    leading?.tick();
    forwarding.tick();
    sinceHeartbeat += elapsed;
    if (sinceHeartbeat < HEARTBEAT_MS) return;
    sinceHeartbeat = 0;
    election.gossip();
  });

  /** Does a write at the leader, wherever that is. */
  const perform: NodeOptions['perform'] = (operation, done) => {
    const leader = election.leader();
    if (leading) leading.write(operation, done);
    else if (leader !== undefined) forwarding.forward(leader, election.term(), operation, done);
  };

  function resign(): void {
    leading?.giveUp();
    election.resign();
  }

  return {
    perform,
    /** Steps down and leaves the lead to another member. */
    resign,
    isolate: transport.isolate,
    leave(): void {
      clock.stop();
      resign();
      transport.close();
    },
  };
}
