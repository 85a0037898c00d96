import { Type } from 'typebox';

export const ToolServers = Type.Array(
  Type.Object(
    {
      name: Type.String(),
      state: Type.Enum(['starting', 'up', 'away'], {
        description: '`away`: its calls fail, and it is tried again',
      }),
      tools: Type.Integer({ minimum: 0, description: 'Those that are offered of it' }),
      reason: Type.Optional(Type.String({ description: 'Why it is away' })),
    },
    { title: 'ToolServerHealth', description: 'A server whose tools agents may use' },
  ),
  { description: 'Absent without any' },
);
