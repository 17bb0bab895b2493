// The addresses that campaigns leave out: suppressed addresses, and addresses of
// persons who have refused campaigns. The check runs when an e-mail is queued and again when it is
// sent, because a person may refuse in between.
import type { Context } from '../../kernel/context.ts'
import { refusedAddresses } from '../persons/consent.ts'
import { suppressedAddresses } from './suppressions.ts'

export type Exclusion = 'suppressed' | 'not_subscribed'

/**
 * The text for the column `error` of the ledger. It is null where the state of the row is
 * explanation enough.
 */
export const exclusionNotes: Readonly<Record<Exclusion, string | null>> = {
  suppressed: null,
  not_subscribed: 'A person with this address has refused campaigns: subscribed is false.',
}

/** Returns the addresses that are left out, each with its reason. `addresses` must be folded. */
export async function findExclusions(
  ctx: Context,
  addresses: readonly string[],
): Promise<ReadonlyMap<string, Exclusion>> {
  const refused = [...(await refusedAddresses(ctx, addresses))].map((each) => [each, 'not_subscribed'] as const)
  const suppressed = [...(await suppressedAddresses(ctx, addresses))].map((each) => [each, 'suppressed'] as const)
  return new Map<string, Exclusion>([...refused, ...suppressed])
}
