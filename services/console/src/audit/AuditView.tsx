import { EmptyState, View } from '../components/view.tsx';
import { CheckpointCard, TrustCard } from './checkpoints.tsx';
import { VerifyCard } from './VerifyCard.tsx';

/** Verification in the browser, the log's newest checkpoint, and what the person trusts. */
export const AuditView = () => (
  <View title="Audit" description="Verify sessions in this browser, without trusting the service.">
    {/* Browsers have it on pages of HTTPS and of localhost alone. */}
    {'subtle' in crypto ? (
      <div className="mx-auto grid max-w-6xl items-start gap-4 lg:grid-cols-2">
        <VerifyCard />
        <CheckpointCard />
        <TrustCard />
      </div>
    ) : (
      <EmptyState title="This page has no WebCrypto">
        Without it the browser can verify nothing. Open the console over HTTPS, or on localhost.
      </EmptyState>
    )}
  </View>
);
