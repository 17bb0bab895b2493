// Columns that say who gets no mailings. Every program has them, so they belong to no layout.
import { wordsForNo } from '../../../../contract/input/flags.ts'
import type { ColumnRule } from '../../settings.ts'

type Values = NonNullable<ColumnRule['values']>

const each = (words: string, to: string | null): Values =>
  Object.fromEntries(words.split('|').map((word) => [word, to]))

const rule = (values: Values): ColumnRule => ({ fields: ['subscribed'], fallback: true, values })

/**
 * An opt-out. Every value means it but those that deny it, because some programs write the time of
 * the unsubscription.
 */
const optOut = rule({
  ...each(wordsForNo.join('|'), null),
  ...each('unchecked|subscribed|opt-in|opted-in|opted in|active|never|not unsubscribed|onwaar', null),
  '*': 'false',
})
const optOutHeader =
  /\b(opt(ed)? out|optout|unsubscribed?|unsub|do not (e ?)?mail|no (e ?)?mails?|abgemeldet|abmeldung|desabonne|desinscrit|dado de baja|disiscritto)\b/

/**
 * The status of a subscription, such as that of Mailchimp and Pipedrive. It never lifts an opt-out
 * that is stored here.
 */
const status = rule({
  ...each('unsubscribed|opted out|opted_out|opt-out|cleaned|bounced|abgemeldet|archived|no consent', 'false'),
  '*': null,
})
const statusHeader =
  /^((person|contact|lead) )?((e ?mail )?(marketing|subscription|subscriber|newsletter)|e ?mail) status$/

/** Columns that say more about opt-outs, and not who opted out. */
const aboutHeader = /\b(link|url|page|reason|count|rate|grund|source)\b/

/** Returns the rule for a header in the form of `normalizeHeader`, or undefined for others. */
export const subscriptionRule = (header: string): ColumnRule | undefined =>
  optOutHeader.test(header) && !aboutHeader.test(header) ? optOut : statusHeader.test(header) ? status : undefined
