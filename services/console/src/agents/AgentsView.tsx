import { View } from '../components/layout.tsx';

export const AgentsView = () => <View title="Agents">{null}</View>;
