import { View } from '../../components/layout.tsx';

export const SessionView = () => <View title="Session">{null}</View>;
