import { describe, expect, test } from '@jest/globals';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import {
  chooseNode,
  describeUnusableCluster,
  parseMembers,
} from '../../../../../infra/eventstoredb/connection/discoveryState.ts';

const { LEADER, FOLLOWER, UNKNOWN, READONLYREPLICA } = gossipPb.MemberInfo.VNodeState;

const member = (
  address: string,
  state: gossipPb.MemberInfo.VNodeState,
  isAlive = true,
  port = 2113,
): gossipPb.MemberInfo =>
  new gossipPb.MemberInfo()
    .setState(state)
    .setIsAlive(isAlive)
    .setHttpEndPoint(new gossipPb.EndPoint().setAddress(address).setPort(port));

const gossip = (...members: gossipPb.MemberInfo[]) =>
  parseMembers(new gossipPb.ClusterInfo().setMembersList(members));

describe('the node to use', () => {
  test('is the living leader', () => {
    expect(chooseNode(gossip(member('a', FOLLOWER), member('b', LEADER)), 'leader')).toEqual({
      address: 'b',
      port: 2113,
    });
    expect(
      chooseNode(gossip(member('a', FOLLOWER), member('b', LEADER, false)), 'leader'),
    ).toBeUndefined();
    expect(
      chooseNode(gossip(member('a', FOLLOWER), member('b', UNKNOWN)), 'leader'),
    ).toBeUndefined();
  });

  test('is of the preferred kind, or any that serves', () => {
    expect(
      chooseNode(gossip(member('a', LEADER), member('b', READONLYREPLICA)), 'readonlyreplica')
        ?.address,
    ).toBe('b');
    expect(chooseNode(gossip(member('a', LEADER), member('b', UNKNOWN)), 'follower')?.address).toBe(
      'a',
    );
  });

  test('never has an invalid address, whatever a server reports', () => {
    const invalidMembers = [
      '',
      '::1',
      'a b',
      'admin:secret@evil',
      'evil/?tls=false',
      'x'.repeat(1_000),
    ].map((address) => member(address, LEADER));
    expect(
      gossip(...invalidMembers, member('a', LEADER, true, 0), member('a', LEADER, true, 70_000)),
    ).toEqual([]);
  });
});

test('reports a cluster without a leader as without quorum or in an election', () => {
  expect(
    describeUnusableCluster(
      gossip(member('a', UNKNOWN), member('b', FOLLOWER, false), member('c', FOLLOWER, false)),
    ),
  ).toMatch(/no quorum: only 1 of its 3 nodes.*b:2113 and c:2113/);
  expect(
    describeUnusableCluster(
      gossip(member('a', UNKNOWN), member('b', FOLLOWER), member('c', FOLLOWER, false)),
    ),
  ).toMatch(/has no leader/);
});
