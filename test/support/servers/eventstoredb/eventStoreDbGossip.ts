import gossipGrpc from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipPb from '@eventstore/db-client/generated/gossip_pb.js';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import grpc from '@grpc/grpc-js';

interface GossipMember {
  port: number;
  /** As the protocol names it, in lower case: `leader`, `follower`, `unknown` … */
  state: string;
  alive: boolean;
}

const STATES = Object.entries(gossipPb.MemberInfo.VNodeState);
const NAMES = new Map(STATES.map(([name, number]) => [number, name.toLowerCase()]));

/** What the node at a port tells of its cluster; undefined when it does not answer in time. */
export function gossipOf(port: number, deadlineMs = 500): Promise<GossipMember[] | undefined> {
  const client = new gossipGrpc.GossipClient(
    `127.0.0.1:${port}`,
    grpc.credentials.createInsecure(),
  );
  return new Promise((resolve) => {
    client.read(
      new sharedPb.Empty(),
      new grpc.Metadata(),
      { deadline: Date.now() + deadlineMs },
      (error, info) => {
        client.close();
        if (error || !info) return resolve(undefined);
        resolve(
          info.getMembersList().map((member) => ({
            port: member.getHttpEndPoint()?.getPort() ?? 0,
            state: NAMES.get(member.getState()) ?? '',
            alive: member.getIsAlive(),
          })),
        );
      },
    );
  });
}
