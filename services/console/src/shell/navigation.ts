import {
  Activity,
  Bot,
  ChartColumn,
  GitCompareArrows,
  MessagesSquare,
  ShieldCheck,
} from 'lucide-react';

/** The views, in the order of the menu. `g` and then `key` opens one. */
export const VIEWS = [
  { to: '/agents', label: 'Agents', key: 'a', icon: Bot },
  { to: '/sessions', label: 'Sessions', key: 's', icon: MessagesSquare },
  { to: '/replays', label: 'Replays', key: 'r', icon: GitCompareArrows },
  { to: '/usage', label: 'Usage', key: 'u', icon: ChartColumn },
  { to: '/audit', label: 'Audit', key: 'v', icon: ShieldCheck },
  { to: '/system', label: 'System', key: 'h', icon: Activity },
] as const;
