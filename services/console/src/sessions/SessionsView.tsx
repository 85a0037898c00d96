import { View } from '../components/layout.tsx';

export const SessionsView = () => <View title="Sessions">{null}</View>;
