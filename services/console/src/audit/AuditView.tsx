import { useNavigate, useSearch } from '@tanstack/react-router';
import { View } from '../components/layout.tsx';
import { EmptyState } from '../components/states.tsx';
import { CheckpointCard } from './CheckpointCard.tsx';
import { ReceiptCard } from './ReceiptCard.tsx';
import { TrustCard } from './TrustCard.tsx';
import { VerifyCard } from './VerifyCard.tsx';

/** The log's checkpoint, what the person trusts, and verification in the browser. */
export function AuditView() {
  const { session, receipt } = useSearch({ from: '/audit' });
  const navigate = useNavigate({ from: '/audit' });
  // Browsers have it on pages of HTTPS and of localhost alone.
  if (!('subtle' in crypto))
    return (
      <View title="Audit">
        <EmptyState title="This page has no WebCrypto">
          Without it the browser can verify nothing. Open the console over HTTPS, or on localhost.
        </EmptyState>
      </View>
    );
  return (
    <View
      title="Audit"
      description="Verify sessions and erasures in this browser, without trusting the service."
    >
      <div className="mx-auto grid max-w-6xl items-start gap-4 lg:grid-cols-2">
        <VerifyCard
          sessionId={session}
          onSelect={(next) => void navigate({ search: (all) => ({ ...all, session: next }) })}
        />
        <CheckpointCard />
        <TrustCard />
        <ReceiptCard
          subjectId={receipt}
          onSelect={(next) => void navigate({ search: (all) => ({ ...all, receipt: next }) })}
        />
      </div>
    </View>
  );
}
