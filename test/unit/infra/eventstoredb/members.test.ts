import { describe, expect, test } from '@jest/globals';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import { chooseMember, membersOf, troubleOf } from '../../../../infra/eventstoredb/members.ts';

const { LEADER, FOLLOWER, UNKNOWN, READONLYREPLICA } = gossipPb.MemberInfo.VNodeState;

const member = (
  address: string,
  state: gossipPb.MemberInfo.VNodeState,
  alive = true,
  port = 2113,
): gossipPb.MemberInfo =>
  new gossipPb.MemberInfo()
    .setState(state)
    .setIsAlive(alive)
    .setHttpEndPoint(new gossipPb.EndPoint().setAddress(address).setPort(port));

const gossip = (...members: gossipPb.MemberInfo[]) =>
  membersOf(new gossipPb.ClusterInfo().setMembersList(members));

describe('the node to use', () => {
  test('is the living leader', () => {
    expect(chooseMember(gossip(member('a', FOLLOWER), member('b', LEADER)), 'leader')).toEqual({
      address: 'b',
      port: 2113,
    });
    expect(
      chooseMember(gossip(member('a', FOLLOWER), member('b', LEADER, false)), 'leader'),
    ).toBeUndefined();
    expect(
      chooseMember(gossip(member('a', FOLLOWER), member('b', UNKNOWN)), 'leader'),
    ).toBeUndefined();
  });

  test('is one of the preferred kind, else any that serves', () => {
    expect(
      chooseMember(gossip(member('a', LEADER), member('b', READONLYREPLICA)), 'readonlyreplica')
        ?.address,
    ).toBe('b');
    expect(
      chooseMember(gossip(member('a', LEADER), member('b', UNKNOWN)), 'follower')?.address,
    ).toBe('a');
  });

  test('is never an address that can not be one, whatever a server says', () => {
    const lies = ['', '::1', 'a b', 'admin:secret@evil', 'evil/?tls=false', 'x'.repeat(1_000)].map(
      (address) => member(address, LEADER),
    );
    expect(
      gossip(...lies, member('a', LEADER, true, 0), member('a', LEADER, true, 70_000)),
    ).toEqual([]);
  });
});

test('a cluster without a leader has lost its quorum or is choosing one', () => {
  expect(
    troubleOf(
      gossip(member('a', UNKNOWN), member('b', FOLLOWER, false), member('c', FOLLOWER, false)),
    ),
  ).toMatch(/no quorum: only 1 of its 3 nodes.*b:2113 and c:2113/);
  expect(
    troubleOf(gossip(member('a', UNKNOWN), member('b', FOLLOWER), member('c', FOLLOWER, false))),
  ).toMatch(/has no leader/);
});
