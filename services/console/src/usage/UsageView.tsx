import { View } from '../components/layout.tsx';

export const UsageView = () => <View title="Usage">{null}</View>;
