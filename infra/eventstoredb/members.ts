import gossipPb, { type ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import { hostName, isHost, type Host, type Target } from './connectionString.ts';

const { VNodeState } = gossipPb.MemberInfo;

/** A node as the gossip of one of them describes it. */
export interface Member {
  host: Host;
  state: gossipPb.MemberInfo.VNodeState;
  alive: boolean;
}

export const membersOf = (info: ClusterInfo): Member[] =>
  info.getMembersList().flatMap((member) => {
    const endpoint = member.getHttpEndPoint();
    const host = endpoint && { address: endpoint.getAddress(), port: endpoint.getPort() };
    return host && isHost(host)
      ? [{ host, state: member.getState(), alive: member.getIsAlive() }]
      : [];
  });

const REPLICAS = new Set([
  VNodeState.READONLYREPLICA,
  VNodeState.PREREADONLYREPLICA,
  VNodeState.READONLYLEADERLESS,
]);
const SERVING = new Set([VNodeState.LEADER, VNodeState.FOLLOWER, ...REPLICAS]);

const WANTED: Record<Target['preference'], (member: Member) => boolean> = {
  leader: ({ state }) => state === VNodeState.LEADER,
  follower: ({ state }) => state === VNodeState.FOLLOWER,
  readonlyreplica: ({ state }) => REPLICAS.has(state),
  random: () => true,
};

/** The node to use: of the wanted kind, or, where no leader is wanted, any that serves. */
export function chooseMember(
  members: readonly Member[],
  preference: Target['preference'],
): Host | undefined {
  const serving = members.filter(({ state, alive }) => alive && SERVING.has(state));
  const wanted = serving.filter(WANTED[preference]);
  const candidates = wanted.length === 0 && preference !== 'leader' ? serving : wanted;
  return candidates[Math.floor(Math.random() * candidates.length)]?.host;
}

/** Why none of the members can be used, in a sentence. */
export function troubleOf(members: readonly Member[]): string {
  const alive = members.filter((member) => member.alive).length;
  const names = members.filter((member) => !member.alive).map(({ host }) => hostName(host));
  if (alive * 2 > members.length)
    return 'The cluster of the event store has no leader at the moment.';
  const dead = names.length === 1 ? `${names[0]} is not` : `${names.join(' and ')} are not`;
  return `The cluster of the event store has no quorum: only ${alive} of its ${members.length} nodes ${alive === 1 ? 'is' : 'are'} alive; ${dead}.`;
}
