// The names under which events are stored and sent.
import { bareVerbs } from '../../contract/bare-verbs.ts'

/** Matches the names of events that are stored without the suffix `.after`. */
export const bareEvents = new RegExp(`\\.(${bareVerbs.join('|')})$`)

/** Returns the stored name of an event of the contract, such as `lead.create.after`. */
export const storedNameOf = (base: string): string => (bareEvents.test(base) ? base : `${base}.after`)

/**
 * Returns whether webhooks never send an event of this name. Such an event could reveal a secret,
 * or its delivery would change the webhook and cause another such event.
 */
export const isNeverSent = (name: string): boolean =>
  /^(user\.token|settings\.webhook|core\.configuration)\./.test(name)
