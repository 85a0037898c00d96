import type { Member } from '../node.ts';
import { isLonger, type Message } from './protocol.ts';
import type { Replica } from './replica.ts';
import {
  electionTimeout,
  FAITHFUL_MS,
  QUORUM_LOST_MS,
  RESIGNED_MS,
  successionTimeout,
} from './timing.ts';

interface Options {
  self: number;
  members: readonly Member[];
  replica: Replica;
  /** For how long a member has been silent. */
  silence: (member: number) => number;
  broadcast: (message: Message) => void;
  send: (peer: number, message: Message) => void;
  /** The lead is won or lost; the state of this member is what it is now. */
  changed: () => void;
}

type Ask = Message & { kind: 'ask_vote' };
type Vote = Message & { kind: 'vote' };

/**
 * Who leads: a majority votes for one member in each term, and only for one whose log is not
 * shorter than the voter's own. Before it calls an election a member asks whether it would win
 * (`trial`), so that nobody who merely missed the leader for a while deposes it.
 */
export function createElection({
  self,
  members,
  replica,
  silence,
  broadcast,
  send,
  changed,
}: Options) {
  const me = members[self] as Member;
  const majority = Math.floor(members.length / 2) + 1;
  let { term, vote } = replica;
  let leader: number | undefined;
  let patience = electionTimeout();
  let trial = true;
  let votes = new Set<number>();

  const leads = (): boolean => leader === self;
  const gossip = (): void =>
    broadcast({ kind: 'gossip', term, state: me.state, instanceId: me.instanceId });

  function become(state: Member['state'], newLeader: number | undefined): void {
    const isNews = me.state !== state || leader !== newLeader;
    me.state = state;
    leader = newLeader;
    votes = new Set();
    if (!isNews) return;
    changed();
    gossip();
  }

  function enter(newTerm: number, newVote: number | undefined): void {
    term = newTerm;
    vote = newVote;
    replica.saveVote(term, vote);
  }

  function campaign(isTrial: boolean): void {
    patience = electionTimeout();
    trial = isTrial;
    if (!trial) enter(term + 1, self);
    become('unknown', undefined);
    votes.add(self);
    broadcast({ kind: 'ask_vote', term: trial ? term + 1 : term, trial, end: replica.logEnd() });
  }

  function hasLeader(): boolean {
    return leader !== undefined && (leads() || silence(leader) < FAITHFUL_MS);
  }

  return {
    term: () => term,
    leader: () => leader,
    leads,
    gossip,
    /** Some member is in a later term: whatever this one was, it is no more. */
    adopt(newTerm: number): void {
      enter(newTerm, undefined);
      become('unknown', undefined);
    },
    /** A member leads in the present term. */
    follow(newLeader: number): void {
      patience = electionTimeout();
      become('follower', newLeader);
    },
    /** The leader does not lead any more. */
    miss(formerLeader: number): void {
      if (leader !== formerLeader) return;
      patience = Math.min(patience, successionTimeout());
      become('unknown', undefined);
    },
    established: () => become('leader', self),
    resign(): void {
      if (!leads()) return;
      patience = RESIGNED_MS;
      become('unknown', undefined);
    },
    tick(elapsed: number): void {
      if (leads()) {
        const heard = members.filter(
          (_, index) => index === self || silence(index) < QUORUM_LOST_MS,
        ).length;
        if (heard < majority) become('unknown', undefined);
      } else {
        patience -= elapsed;
        if (patience <= 0) campaign(true);
      }
    },
    asked(from: number, ask: Ask): void {
      const isFree = ask.trial
        ? ask.term > term
        : ask.term === term && (vote === undefined || vote === from);
      const granted = isFree && !hasLeader() && !isLonger(replica.logEnd(), ask.end);
      if (granted && !ask.trial) {
        enter(term, from);
        patience = electionTimeout();
      }
      send(from, { kind: 'vote', term, trial: ask.trial, granted });
    },
    voted(from: number, answer: Vote): void {
      if (!answer.granted || answer.trial !== trial || leader !== undefined || votes.size === 0)
        return;
      if (!trial && answer.term !== term) return;
      votes.add(from);
      if (votes.size < majority) return;
      if (trial) campaign(false);
      else become('pre_leader', self);
    },
  };
}
