import { View } from '../components/layout.tsx';

export const SystemView = () => <View title="System">{null}</View>;
