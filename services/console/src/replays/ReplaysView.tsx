import { View } from '../components/layout.tsx';

export const ReplaysView = () => <View title="Replays">{null}</View>;
