/** Opens a group whose server has children, and writes their process ids to a file: the argument. */
import { hostileServer, openGroup, serverWith } from '../fakes/mcpGroups.ts';

openGroup(serverWith(hostileServer('has-children', process.argv[2])));
setInterval(() => undefined, 1_000);
